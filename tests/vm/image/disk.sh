# The guest's root disk: a root folder with the module tree laid in, less what
# has nothing to do with what is tested.
# disk.sh OUT FINAL ROOT_DIR MODULES_DIR KERNEL_DIR
set -eu
here=$(dirname "$0")
out=$1 root=$3 modules=$4 kernel=$5
cp -a "$root/root" "$out/root"
mkdir -p "$out/root/lib/modules"
cp -a "$modules/modules/." "$out/root/lib/modules/"
grep -v '^#' "$here/masked.txt" | while read -r name; do
	case $name in
	*-generator) mask=$out/root/etc/systemd/system-generators/$name ;;
	*) mask=$out/root/etc/systemd/system/$name ;;
	esac
	mkdir -p "${mask%/*}"
	ln -sf /dev/null "$mask"
done
# Half a gigabyte over what is in it, as a sparse file: the guest's own room.
size=$(($(du -sm "$out/root" | cut -f1) + 512))
mke2fs -q -t ext4 -E root_owner=0:0 -L root -d "$out/root" "$out/root.img" "${size}m"
rm -rf "$out/root"
ln "$kernel/vmlinux" "$out/vmlinux"
ln "$modules/initrd" "$out/initrd"
cp "$kernel/release" "$out/release"
