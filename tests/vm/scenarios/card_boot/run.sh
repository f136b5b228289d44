set -u
. /usr/lib/bed/vf.sh
systemctl show -p Result --value networking.service >"$OUT/networking"
ip -br addr >"$OUT/addr"
ip link show ib0 >"$OUT/link"
readlink -f /sys/class/net/ib0/device/driver >"$OUT/driver"
cat /sys/module/mlx5_core/taint >"$OUT/taint"
cat /sys/kernel/debug/ibcard/0001:01:00.0/held >"$OUT/held"
ibprov status >"$OUT/status"
echo "status: $?"
ibprov status --format json >"$OUT/status.json"
ibprov check --format json >"$OUT/check.json"
echo "check: $?"
dmesg >"$OUT/dmesg"
true
