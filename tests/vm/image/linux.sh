# A guest for libvirt: kernel, and an initrd that plays a guest agent.
# linux.sh OUT FINAL KERNEL_DIR
set -eu
out=$1 kernel=$3
here=$(dirname "$0")
release=$(cat "$kernel/release")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# modprobe -d wants lib/modules below its root.
mkdir -p "$root/lib" "$root/initrd/bin" "$root/initrd/modules"
ln -s "$kernel/modules" "$root/lib/modules"
depmod -b "$root" "$release"
for name in virtio_pci virtio_console; do
	modprobe -d "$root" -S "$release" -C /dev/null --show-depends --ignore-install "$name"
done >"$root/closure"
sed -n 's/^insmod \([^ ]*\).*/\1/p' "$root/closure" | awk '!seen[$0]++' >"$root/order"
while read -r file; do
	cp "$file" "$root/initrd/modules/"
	echo "${file##*/}" >>"$root/initrd/order"
done <"$root/order"
cp /bin/busybox "$root/initrd/bin/busybox"
cp "$here/linux-init" "$root/initrd/init"
chmod 755 "$root/initrd/init"
(cd "$root/initrd" && find . | cpio -o -H newc --quiet) >"$out/initrd"
cp "$kernel/vmlinux" "$out/vmlinux"
