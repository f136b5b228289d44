#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Builds the card's module out of tree.
#
#   build.sh HEADERS_DIR OUT_DIR
#
# HEADERS_DIR is a kernel header directory as KDIR for "make -C". The module
# ends up in OUT_DIR/ibcard.ko; nothing is written elsewhere.
set -eu

if [ $# -ne 2 ]; then
	echo "usage: $0 HEADERS_DIR OUT_DIR" >&2
	exit 2
fi
src=$(cd "$(dirname "$0")" && pwd)
headers=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
work=$out/build-ibcard

rm -rf "$work"
mkdir -p "$work"
cp "$src/Kbuild" "$src"/*.[ch] "$work/"
# BTF would need vmlinux, which header packages do not hold. The headers name the
# compiler that the kernel was made with; this machine's own serves as well.
make -C "$headers" CC=gcc M="$work" CONFIG_DEBUG_INFO_BTF_MODULES= modules
cp "$work/ibcard.ko" "$out/"
# Debugging information would make an initrd ten times as large.
strip --strip-debug "$out/ibcard.ko"
