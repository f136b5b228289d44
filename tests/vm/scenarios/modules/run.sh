systemctl show -p Result --value networking.service >"$OUT/networking"
ip -br addr >"$OUT/addr"
cp /run/from-override "$OUT/from-override"
cp /run/ibprov/boot.json "$OUT/install_works.json"

ifdown ib0
without_ipoib() { # NAME
	modprobe -r ib_ipoib
	systemctl restart ibprov.service
	cp /run/ibprov/boot.json "$OUT/$1.json"
}
for name in denied install_override; do
	cp "/usr/lib/bed/$name.conf" /etc/modprobe.d/site.conf
	without_ipoib "$name"
done
rm /etc/modprobe.d/site.conf
# As after a kernel update without its modules.
find /lib/modules -name 'ib_ipoib.ko*' -delete
depmod -a
without_ipoib not_built
