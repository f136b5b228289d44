#!/bin/sh
# Builds what a test guest boots from, or finds it in the cache, and prints the
# folder. Everything it needs it installs.
#   build.sh vm FLAVOUR      folder with vmlinux, initrd, root.img, release
#   build.sh root FLAVOUR    folder with root/, for systemd-nspawn
#   build.sh linux FLAVOUR   folder with vmlinux and initrd of a guest for libvirt
set -eu
what=$1 flavour=$2
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
. ./cache.sh
. ./distro.sh

# shellcheck disable=SC2046 # a list of package names
sh need.sh $(grep -v '^#' packages.txt)

# Root and kernel are those of this machine's own release, or of another suite of the
# same archive.
own_apt=${APT_CONFIG:-}
use_suite() { # SUITE
	export APT_CONFIG="$own_apt"
	[ "$1" = "$suite" ] || APT_CONFIG=$(sh suite.sh "$1" "$cache/apt-$1")
}
root_suite=${IBPROV_ROOT_SUITE:-$suite}
use_suite "$root_suite"

flavour_packages() { # NAME; a line @OTHER takes over OTHER's packages
	if [ ! -e "flavours/$1" ]; then
		echo "image: no flavour '$1': flavours are $(ls flavours | tr '\n' ' ')" >&2
		exit 1
	fi
	grep -v '^#' "flavours/$1" | while read -r line; do
		case $line in
		@*) flavour_packages "${line#@}" ;;
		*) echo "$line" ;;
		esac
	done
}
packages=$(flavour_packages "$flavour" | sort -u)
# Those of another architecture have the version of this one's.
# shellcheck disable=SC2046
versions=$(apt-cache show --no-all-versions $(echo "$packages" | sed 's/:.*//' | sort -u) | grep -E '^(Package|Version):')
make=root.sh
foreign=$(echo "$packages" | grep : || :)
[ -z "$foreign" ] || make=foreign.sh
root=$(once "root-$flavour-$( (echo "$versions$foreign"; describe root.sh distro.sh) | digest)" "$here/$make" "$root_suite" $packages)
if [ "$what" = root ]; then
	echo "$root"
	exit 0
fi

kernel_suite=${IBPROV_KERNEL_SUITE:-$suite}
use_suite "$kernel_suite"
# Image and headers of the very same version: archives differ in what is newest.
# Debian's packages name it in what they depend on, Ubuntu's do not.
image=$(apt-cache show --no-all-versions "$kernel_package" | sed -n 's/^Depends: //p' | tr ',' '\n' | sed -n 's/^ *\(linux-image-[0-9].*\)/\1/p' | head -n 1)
release=${image%% *}
release=${release#linux-image-}
version=$(echo "$image" | sed -n 's/.*(= \(.*\))/\1/p')
[ -n "$version" ] || version=$(apt-cache show --no-all-versions "linux-image-$release" | sed -n 's/^Version: //p')
image=linux-image-$release=$version
headers=linux-headers-$release=$version
# Headers come in pieces, and with Ubuntu and newer Debians so does the image: those of that
# version. What is built without being signed may be newer for some hours, and then only that is
# in the archive: headers want a linux-kbuild that is as new or newer.
piece() { # PACKAGE
	versions=$(apt-cache madison "$1" | cut -d'|' -f2 | tr -d ' ')
	if ! echo "$versions" | grep -qxF "$version"; then
		set -- "$1" "$(echo "$versions" | head -n 1)"
	fi
	echo "$1=${2-$version}"
}
pieces=$(for package in "$kernel_package" "$image" "$headers"; do apt-cache depends "$package"; done |
	sed -n "s/^ *Depends: \(linux-\(base-[0-9]\|binary-\|headers-\|kbuild-\|modules-\).*\)/\1/p" | sort -u |
	while read -r package; do piece "$package"; done)
kernel=$(once "kernel-$(echo "$image" | tr "=" "-")-$( (echo "$pieces"; describe kernel.sh) | digest)" "$here/kernel.sh" "$release" "$image" "$headers" $pieces)
if [ "$what" = linux ]; then
	once "linux-$( (echo "$kernel"; describe linux.sh initrd.sh linux-init) | digest)" "$here/linux.sh" "$kernel"
	exit 0
fi

hca=$(cd ../hca && pwd -P)
card=$(cd ../card && pwd -P)
# The programs among the headers may need a newer C library than this machine has.
builder=
if ldd "$kernel/headers/usr/src/linux-headers-$release"/scripts/mod/modpost* 2>&1 | grep -q "not found"; then
	builder=$(APT_CONFIG=$own_apt IBPROV_ROOT_SUITE=$kernel_suite sh build.sh root build | tail -n 1)/root
fi
modules=$(once "modules-$( (echo "$kernel"; describe modules.sh inside.sh modules.txt initrd.sh initrd-init "$hca" "$card") | digest)" "$here/modules.sh" "$kernel" "$hca" "$card" $builder)
once "vm-$flavour-$( (echo "$root $modules"; describe disk.sh masked.txt) | digest)" "$here/disk.sh" "$root" "$modules" "$kernel"
sweep
