systemctl show -p Result --value networking.service >"$OUT/networking"
ip -br addr >"$OUT/addr"
cat /proc/net/dev >"$OUT/netdevs"
readlink -f /sys/class/net/ib0/device/driver >"$OUT/driver"
cat /sys/module/mlx5_core/taint >"$OUT/taint"
dmesg >"$OUT/dmesg"
if command -v ibprov >/dev/null; then
	ibprov status -v >"$OUT/status"
	echo "status: $?"
	ibprov status --format json >"$OUT/status.json"
	systemctl show -p ActiveState,Result,ExecMainStatus,StatusText ibprov.service >"$OUT/unit"
fi
true
