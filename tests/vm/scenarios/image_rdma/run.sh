. /usr/lib/bed/iface.sh
cp /run/early-links /run/early-modules "$OUT/"
cp /usr/lib/bed/initramfs /boot/image
for name in fabric0 storage0; do
	ended $name
	device=$(basename "$(readlink -f /sys/class/net/$name/device)")
	echo "$name: $device $(ls /sys/bus/pci/devices/$device/infiniband) $(systemctl is-active "$(unit $name)")"
done
echo "networking: $(systemctl show -p Result --value networking.service)"
ibprov status >"$OUT/status" 2>&1
echo "status: $?"
ibprov check >"$OUT/check" 2>&1
echo "check: $?"
ibprov check --initrd /boot/image >"$OUT/initrd" 2>&1
echo "initrd: $?"
dmesg >"$OUT/dmesg"
journalctl -b -o short-monotonic >"$OUT/journal" 2>&1
true
