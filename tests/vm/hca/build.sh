#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Builds the simulated HCA's modules out of tree.
#
#   build.sh HEADERS_DIR OUT_DIR
#
# HEADERS_DIR is a kernel header directory as KDIR for "make -C" (or the root
# of unpacked Debian header packages, with usr/src/linux-headers-* in it).
# The modules end up in OUT_DIR/*.ko; nothing is written elsewhere.
set -eu

if [ $# -ne 2 ]; then
	echo "usage: $0 HEADERS_DIR OUT_DIR" >&2
	exit 2
fi
src=$(cd "$(dirname "$0")" && pwd)
headers=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
work=$out/build

rm -rf "$work"
mkdir -p "$work/mods/mlx5" "$work/mods/mlx4"

# Debian's header Makefile includes the common part by absolute path.  When
# the packages are unpacked and not installed, a copy with the right path
# (everything else linked) serves.
unpacked=$(echo "$headers"/usr/src/linux-headers-*-"$(dpkg --print-architecture)")
if [ -f "$unpacked/Makefile" ]; then
	common=$(echo "$headers"/usr/src/linux-headers-*-common)
	mkdir "$work/headers"
	for file in "$unpacked"/* "$unpacked"/.[a-z]*; do
		[ -e "$file" ] && ln -s "$file" "$work/headers/"
	done
	rm "$work/headers/Makefile"
	sed "s,/usr/src/linux-headers-[^/]*-common,$common," \
		"$unpacked/Makefile" >"$work/headers/Makefile"
	headers=$work/headers
fi

cp "$src/Kbuild" "$src/ibsim_pci.c" "$src/ibsim_user.c" "$work/mods/"
for family in mlx5 mlx4; do
	cp "$src"/core_*.c "$src"/ib_*.c "$src"/knobs.c "$src"/slots.c \
		"$src"/*.h "$work/mods/$family/"
	cp "$src/Kbuild.hca" "$work/mods/$family/Kbuild"
done

# BTF would need vmlinux, which header packages do not hold. The headers name the
# compiler that the kernel was made with; this machine's own serves as well.
make -C "$headers" CC=gcc M="$work/mods" CONFIG_DEBUG_INFO_BTF_MODULES= modules
cp "$work"/mods/*.ko "$work"/mods/mlx5/*.ko "$work"/mods/mlx4/*.ko "$out/"
# Debugging information would make an initrd ten times as large.
strip --strip-debug "$out"/*.ko
