#!/bin/sh
# An initramfs as a host with the files of TREE builds it, packed with gzip, with ibprov's
# part in it. As root.
#   initramfs.sh dracut|initramfs-tools TREE OUT
set -eu
tool=$1 tree=$2 out=$3
cd "$(dirname "$0")/../../.."
work=$(mktemp -d "${TMPDIR:-/var/tmp}/initramfs-XXXXXX")
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8
root=$(sh tests/vm/image/build.sh root initramfs | tail -n 1)/root
release=$(cat "$(sh tests/vm/image/build.sh vm base | tail -n 1)/release")
export tool tree out root work release
unshare --mount --propagation private sh -eu <<'END'
. tests/vm/image/initramfs-host.sh
case $tool in
dracut)
	# The root file system is on a disk of the machine, not of this host. It is mounted when
	# this hook says so, as it would be where it needs the port. Newer releases have the queue
	# that asks it as a module of its own.
	set --
	modules=ibprov
	[ -z "$(find "$host/usr/lib/dracut/modules.d" -name '??initqueue')" ] || modules="$modules initqueue"
	hook=/usr/lib/bed/dracut-finished.sh
	[ ! -e "$host$hook" ] || set -- --include $hook /lib/dracut/hooks/initqueue/finished/50-bed.sh
	on dracut --quiet --force --no-hostonly --add "$modules" --compress gzip "$@" --kver "$release" /boot/image
	;;
initramfs-tools)
	printf 'MODULES=list\nCOMPRESS=gzip\n' >"$host/etc/initramfs-tools/conf.d/site"
	echo IBPROV=y >"$host/etc/initramfs-tools/conf.d/ibprov"
	on mkinitramfs -o /boot/image "$release"
	;;
*)
	echo "initramfs: no such tool: $tool" >&2
	exit 1
	;;
esac
# Newer builders put what is compressed already, such as modules, into an archive that is not
# packed, alone or in front of another. The machine unpacks one that is.
if [ "$(head -c 6 "$host/boot/image")" = 070701 ]; then
	on sh -eu -c 'unmkinitramfs /boot/image /boot/parts && cd /boot/parts
		for part in early*; do [ ! -d "$part" ] || cp -a "$part/." main; done
		[ ! -d main ] || cd main
		find . | cpio -o -H newc --quiet | gzip >/boot/image'
fi
cp "$host/boot/image" "$out"
END
