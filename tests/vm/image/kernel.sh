# Unpacks a kernel, not installing it: vmlinux, modules and headers.
# kernel.sh OUT FINAL RELEASE PACKAGE=VERSION...
set -eu
out=$1 final=$2 release=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work"
apt-get -q download "$@"
mkdir tree
for deb in *.deb; do
	dpkg-deb -x "$deb" tree
done

# QEMU starts an uncompressed kernel through its PVH entry, which spares the
# guest 5 to 8 s of unpacking under emulation. The compressed kernel lies in
# the image behind a boot stub: find where the compressor's magic begins.
image=tree/boot/vmlinuz-$release
[ -e "$image" ] || image=tree/usr/lib/modules/$release/vmlinuz
unpack() { # MAGIC COMMAND...
	magic=$1
	shift
	for at in $(LC_ALL=C grep -obUaP "$magic" "$image" | cut -d: -f1); do
		tail -c +$((at + 1)) "$image" | "$@" >"$out/vmlinux" 2>/dev/null || true
		[ "$(head -c 4 "$out/vmlinux" | tail -c 3)" = ELF ] && return 0
	done
	return 1
}
unpack '\xfd7zXZ\x00' xz -dc --single-stream ||
	unpack '\x28\xb5\x2f\xfd' zstd -dcq || {
	echo "kernel: $image holds no kernel packed with xz or zstd" >&2
	exit 1
}

echo "$release" >"$out/release"
for modules in tree/lib/modules tree/usr/lib/modules; do
	[ ! -d "$modules/$release/kernel" ] || mv "$modules" "$out/modules"
done
if [ ! -d "$out/modules" ]; then
	echo "kernel: no modules of $release in $*" >&2
	exit 1
fi
rm -f "$out/modules/$release/build" "$out/modules/$release/source"
mkdir -p "$out/headers"
mv tree/usr "$out/headers/usr"
# The packaged header tree names itself and its other half by absolute paths.
sed -i "s,\\([ =]\\)/usr/src/,\\1$final/headers/usr/src/," "$out/headers/usr/src/linux-headers-$release/Makefile"
