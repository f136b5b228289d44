. /usr/lib/bed/iface.sh
cp /run/early-links /run/early-modules "$OUT/"
cp /usr/lib/bed/initramfs /boot/image
for name in fabric0 storage0; do
	ended $name
	echo "$name: $(basename "$(readlink -f /sys/class/net/$name/device)") $(systemctl is-active "$(unit $name)") $(ip -o -4 addr show dev $name | awk '{ print $4 }')"
done
echo "networking: $(systemctl show -p Result --value networking.service)"
ibprov status >"$OUT/status" 2>&1
echo "status: $?"
ibprov check --initrd /boot/image >"$OUT/initrd" 2>&1
echo "initrd: $?"
dmesg >"$OUT/dmesg"
true
