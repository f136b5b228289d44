set -u
. /usr/lib/bed/vf.sh
udevadm settle
for n in 1 2 3 4 5 6 7 8; do facts "0001:0$n:00.0" >"$OUT/fresh.$n"; done
before=$(uptime_ms)
ibprov status --format json >"$OUT/status.json"
echo "status: $?"
echo "status took: $(($(uptime_ms) - before)) ms"
ibprov status -v | tail -n 20 >"$OUT/status"

# The driver waits 120 s for firmware that is in pre-initialisation.
phase "firmware that does not come up"
driver=/sys/bus/pci/drivers/mlx5_core
echo 0 >"$pci/0001:08:00.0/sriov_numvfs"
# Before the driver goes: firmware is to be in it when the driver comes.
knobs 0001:08:00.0/fw_wait_ms=1000000000
echo 0001:08:00.0 >$driver/unbind
before=$(uptime_ms)
echo 0001:08:00.0 >$driver/bind 2>"$OUT/bind"
echo "bind: $?"
echo "bind took: $(($(uptime_ms) - before)) ms"
ibprov status --format json >"$OUT/pre-init.json"
echo "pre-init: $?"
knobs 0001:08:00.0/fw_wait_ms=0
echo 0001:08:00.0 >$driver/bind
apply mended 0001:08:00.0
facts 0001:08:00.0 >"$OUT/mended"
dmesg >"$OUT/dmesg"
true
