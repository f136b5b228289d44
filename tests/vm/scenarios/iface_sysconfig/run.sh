. /usr/lib/bed/iface.sh
systemctl show -p Result --value network.service
cat /run/brake.ib1 >"$OUT/brake"
scene before ib0
scene meanwhile ib1
/usr/lib/bed/appear 3
scene late ib2
/usr/lib/bed/appear 4
scene wicked ib3
/usr/lib/bed/appear 5
scene manual ib4
for name in ib0 ib2 ib3 ib4; do
	ibprov iface $name --dry-run >"$OUT/dry-run.$name" 2>&1
done
cp /run/ups "$OUT/ups"
true
