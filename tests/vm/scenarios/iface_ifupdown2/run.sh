. /usr/lib/bed/iface.sh
# The boot does not wait for it.
within 60 is active networking.service
systemctl show -p Result --value networking.service
scene before ib0
/usr/lib/bed/appear 2
scene late ib1
/usr/lib/bed/appear 3
scene hotplug ib2
# Nothing to do the second time.
for netdev in ib0 ib1 ib2; do
	ibprov iface $netdev --dry-run
	systemctl restart "$(unit $netdev)"
done >"$OUT/again" 2>&1
echo "again: $(sort /run/ups | tr '\n' ' ')"
# It has set an MTU that its file does not have to its own default.
ibprov iface ib0 --format json >"$OUT/ib0.json"
echo "mtu: $(cat /sys/class/net/ib0/mtu)"
ls -l /run/network /var/tmp/network >"$OUT/records"
true
