. /usr/lib/bed/iface.sh
cat /run/early-links >"$OUT/early"
systemctl show -p Result --value networking.service >"$OUT/networking"
for name in ib0 ib1 fabric0; do
	ended $name
	echo "$name: $(basename "$(readlink -f /sys/class/net/$name/device)") $(systemctl is-active "$(unit $name)") $(ip -o -4 addr show dev $name | awk '{ print $4 }')"
done
ended ib3
echo "ib3: $(systemctl is-active "$(unit ib3)")"
ibprov status -v >"$OUT/status"
echo "status: $?"
ibprov status --format json >"$OUT/status.json"
systemctl show -p ActiveState,Result,ExecMainStatus ibprov.service >"$OUT/unit"
dmesg >"$OUT/dmesg"
true
