systemctl show -p Result --value networking.service >"$OUT/networking"
ip -br addr >"$OUT/addr"
cat /proc/net/dev >"$OUT/netdevs"
if command -v ibprov >/dev/null; then
	ibprov status -v >"$OUT/status"
	echo "status: $?"
	ibprov status --format json >"$OUT/status.json"
	systemctl show -p ActiveState,Result,ExecMainStatus,StatusText ibprov.service >"$OUT/unit"
fi
true
