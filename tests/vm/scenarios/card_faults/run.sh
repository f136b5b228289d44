set -u
. /usr/lib/bed/vf.sh
bind=/sys/bus/pci/drivers/mlx5_core/bind
state() { cat "$pci/$1"/infiniband/*/ports/1/state; }
ip -br addr >"$OUT/addr"

# 1. Without a cable, and with it again.
phase 1
name=$(ls "$pci/0001:02:00.0/net")
ip link set "$name" up
knobs 0001:02:00.0/link=down
within 10 grep -q DOWN "$pci/0001:02:00.0"/infiniband/*/ports/1/state
ibprov status --format json >"$OUT/no-cable.json"
echo "no cable: $?"
knobs 0001:02:00.0/link=active
within 10 grep -q ACTIVE "$pci/0001:02:00.0"/infiniband/*/ports/1/state

# 2. The third card's firmware thinks better of it.
phase 2
knobs 0001:03:00.0/fail.INIT_HCA=9
echo 0001:03:00.0 >$bind
udevadm settle
ibprov status --format json >"$OUT/mended.json"
echo "mended: $?"

# 3. Firmware that answers nothing while RTNL waits for it.
phase 3
knobs 0001:02:00.0/silent=1
ip link set "$name" down &
before=$(uptime_ms)
ibprov status --format json >"$OUT/silent.json"
echo "silent: $?"
echo "silent took: $(($(uptime_ms) - before))"
knobs 0001:02:00.0/silent=0
wait
dmesg >"$OUT/dmesg"
true
