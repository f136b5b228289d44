. /usr/lib/bed/iface.sh
ended ib0
ended ib1
echo "ib1 at boot: $(systemctl is-active "$(unit ib1)")"
cp /run/ibprov/boot.json "$OUT/boot.json"
for name in ib0 ib1; do
	looked $name
	echo "$name: mtu $(cat /sys/class/net/$name/mtu) later $(systemctl show -p Result --value "$(later $name)")"
	cp "/run/ibprov/ports/$(cat /sys/class/net/$name/ifindex).json" "$OUT/$name.json"
done
echo "agent: $(grep -cx ib1 /run/mgr)"
ibprov status >"$OUT/status" 2>&1
true
