set -u
. /usr/lib/bed/vf.sh
bind=/sys/bus/pci/drivers/mlx5_core/bind
state() { cat "$pci/$1"/infiniband/*/ports/1/state; }
ip -br addr >"$OUT/addr"
systemctl stop sampler.service
sort -u /run/status-lines >"$OUT/status-lines"
cp /run/ibprov/boot.json "$OUT/boot-first.json"

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

# 4. A card that goes away while boot waits for its RDMA device, which its driver's
# other half has given up.
phase 4
for half in /sys/bus/auxiliary/drivers/mlx5_ib.rdma/mlx5_core.rdma.*; do
	case $(readlink -f "$half") in */0001:02:00.0/*) echo "${half##*/}" >/sys/bus/auxiliary/drivers/mlx5_ib.rdma/unbind ;; esac
done
systemctl restart --no-block ibprov.service
waits() { systemctl show -p StatusText --value ibprov.service | grep -q "waiting for 0001:02:00.0"; }
within 30 waits
echo 1 >/sys/bus/pci/devices/0001:02:00.0/remove
# Joins the start that is under way.
systemctl start ibprov.service
echo "vanished: $?"
cp /run/ibprov/boot.json "$OUT/vanished.json"
dmesg >"$OUT/dmesg"
true
