# A guest for libvirt: kernel, and an initrd that plays a guest agent.
# linux.sh OUT FINAL KERNEL_DIR
set -eu
out=$1 kernel=$3
here=$(dirname "$0")
. "$here/initrd.sh"
release=$(cat "$kernel/release")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# modprobe -d wants lib/modules below its root.
mkdir -p "$root/lib" "$root/initrd/bin"
ln -s "$kernel/modules" "$root/lib/modules"
depmod -b "$root" "$release"
for name in virtio_pci virtio_console; do
	closure "$root" "$name"
done >"$root/load"
initrd_modules "$root/initrd" <"$root/load"
cp /bin/busybox "$root/initrd/bin/busybox"
cp "$here/linux-init" "$root/initrd/init"
chmod 755 "$root/initrd/init"
(cd "$root/initrd" && find . | cpio -o -H newc --quiet) >"$out/initrd"
cp "$kernel/vmlinux" "$out/vmlinux"
