#!/bin/sh
# An initramfs of initramfs-tools and one of dracut, each without and with ibprov's part,
# built in a root of this machine's release and judged by `ibprov check --initrd`. As root.
# initramfs.sh PROGRAM
set -eu
program=$1
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/var/tmp}/initramfs-XXXXXX")
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8
root=$(sh tests/vm/image/build.sh root initramfs | tail -n 1)/root
make -s binary="$program" install DESTDIR="$work/installed" PREFIX=/usr
image=$(sh tests/vm/image/build.sh vm base | tail -n 1)
release=$(cat "$image/release")
tree=$work/installed
export root work release tree
# Whatever is mounted is gone when this ends.
unshare --mount --propagation private sh -eu <<'END'
. tests/vm/image/initramfs-host.sh
printf '[[interface]]\nmatch.pci = "0000:01:00.0"\nname = "fabric0"\n' >"$host/etc/ibprov/ibprov.toml"
failed=0 passed=0
# judge NAME CODE WORD IMAGE: the exit code, and what is said.
judge() {
	code=0
	on ibprov check --initrd "$4" >"$work/said" 2>&1 || code=$?
	if [ "$code" = "$2" ] && grep -qF -- "$3" "$work/said"; then
		passed=$((passed + 1))
		echo "test $1 ... ok"
	else
		failed=$((failed + 1))
		echo "test $1 ... FAILED (exit $code, not $2, or not: $3)"
		sed 's/^/    /' "$work/said"
	fi
}
for pack in gzip xz zstd; do
	printf 'MODULES=list\nCOMPRESS=%s\n' "$pack" >"$host/etc/initramfs-tools/conf.d/site"
	on mkinitramfs -o "/boot/plain" "$release" 2>"$work/err" || { cat "$work/err"; exit 1; }
	judge "initramfs-tools, $pack: without ibprov's part it is not complete" 3 "NOT COMPLETE" /boot/plain
	echo IBPROV=y >"$host/etc/initramfs-tools/conf.d/ibprov"
	on mkinitramfs -o "/boot/with" "$release" 2>"$work/err" || { cat "$work/err"; exit 1; }
	judge "initramfs-tools, $pack: with it" 0 "kernel $release: mlx4_core, mlx4_ib, mlx5_core, mlx5_ib, ib_ipoib" /boot/with
	rm "$host/etc/initramfs-tools/conf.d/ibprov"
done
on dracut --quiet --force --no-hostonly --omit-drivers "mlx5_core mlx5_ib ib_ipoib" --kver "$release" /boot/plain 2>"$work/err" || { cat "$work/err"; exit 1; }
judge "dracut: without ibprov's part it is not complete" 3 "NOT COMPLETE" /boot/plain
for pack in gzip xz zstd; do
	on dracut --quiet --force --no-hostonly --add ibprov --compress "$pack" --kver "$release" /boot/with 2>"$work/err" || { cat "$work/err"; exit 1; }
	judge "dracut, $pack: with it" 0 "kernel $release: mlx4_core, mlx4_ib, mlx5_core, mlx5_ib, ib_ipoib" /boot/with
done
# Microcode, in an archive of its own that is not packed, in front.
mkdir -p "$work/early/kernel/x86/microcode"
echo x >"$work/early/kernel/x86/microcode/GenuineIntel.bin"
(cd "$work/early" && find kernel | cpio -o -H newc --quiet) >"$host/boot/early"
cat "$host/boot/early" "$host/boot/with" >"$host/boot/both"
judge "with microcode in front" 0 "kernel $release" /boot/both
# The host goes on, and the image stays.
printf '[[interface]]\nmatch.pci = "0000:01:00.0"\nname = "fabric1"\n' >"$host/etc/ibprov/ibprov.toml"
judge "a name that was changed since" 1 'NAME="fabric0"' /boot/with
head -c 20000 "$host/boot/both" >"$host/boot/cut"
judge "a part of an image" 2 "/boot/cut" /boot/cut
[ "$failed" = 0 ] && result=ok || result=FAILED
echo "test result: $result. $passed passed; $failed failed"
[ "$failed" = 0 ]
END
