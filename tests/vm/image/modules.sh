# The guest's module tree, simulated HCA and card included, and the initrd.
# modules.sh OUT FINAL KERNEL_DIR HCA_SOURCE CARD_SOURCE [ROOT]
# They are built in ROOT, without one on this machine.
set -eu
out=$1 kernel=$3 hca=$4 card=$5 builder=${6:-}
here=$(dirname "$0")
. "$here/initrd.sh"
release=$(cat "$kernel/release")
tree=$out/modules/$release
mkdir -p "$tree/updates"

# modprobe -d wants lib/modules below its root.
root=$(mktemp -d)
initrd=$(mktemp -d)
trap 'rm -rf "$root" "$initrd"' EXIT
mkdir -p "$root/lib"
ln -s "$kernel/modules" "$root/lib/modules"
depmod -b "$root" "$release"
for name in $(grep -v '^#' "$here/modules.txt"); do
	closure "$root" "$name"
done >"$root/keep"
sort -u "$root/keep" | while read -r file; do
	to=$tree/${file#"$root/lib/modules/$release/"}
	mkdir -p "${to%/*}"
	cp "$file" "$to"
done
cp "$kernel/modules/$release/modules.builtin" "$kernel/modules/$release/modules.builtin.modinfo" \
	"$kernel/modules/$release/modules.order" "$tree/"

headers=$kernel/headers/usr/src/linux-headers-$release
in=${builder:+sh $here/inside.sh $builder $kernel $root $card $hca --}
# shellcheck disable=SC2086 # a command, or none
for source in "$card" "$hca"; do
	$in sh "$source/build.sh" "$headers" "$root/${source##*/}"
done
# A client of either kind of device.
mkdir "$tree/extra"
mv "$root/hca/ibsim_user.ko" "$tree/extra/"

# The simulated HCA's drivers lie in updates/ and so win over the distribution's
# mlx5_core and mlx5_ib. A guest with a card is to have the latter: for it there is
# a second index, of the tree without updates/, which the initrd puts in place.
rm "$root/lib/modules"
ln -s "$out/modules" "$root/lib/modules"
depmod -b "$root" "$release"
mkdir "$tree/own"
for index in "$tree"/modules.*; do
	case $index in
	*/modules.builtin | */modules.builtin.modinfo | */modules.order) ;;
	*) mv "$index" "$tree/own/" ;;
	esac
done
cp "$root"/[hc]*/*.ko "$tree/updates/"
depmod -b "$root" "$release"

# The initrd: busybox, the modules that mount the root, in order, and init.
mkdir "$initrd/bin"
cp /bin/busybox "$initrd/bin/busybox"
cp "$here/initrd-init" "$initrd/init"
chmod 755 "$initrd/init"
for name in virtio_pci virtio_blk 'crc32c_generic?' ext4 'ibsim_pci?' ibcard; do
	closure "$root" "$name"
done >"$root/load"
initrd_modules "$initrd" <"$root/load"
(cd "$initrd" && find . | cpio -o -H newc --quiet) >"$out/initrd"
