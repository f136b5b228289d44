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
# shellcheck disable=SC2086
versions=$(apt-cache show --no-all-versions $packages | grep -E '^(Package|Version):')
root=$(once "root-$flavour-$( (echo "$versions"; describe root.sh distro.sh) | digest)" "$here/root.sh" $packages)
if [ "$what" = root ]; then
	echo "$root"
	exit 0
fi

# The kernel of the host's own release, or of another suite of the same archive.
if [ -n "${IBPROV_KERNEL_SUITE:-}" ]; then
	APT_CONFIG=$(sh suite.sh "$IBPROV_KERNEL_SUITE" "$cache/apt-$IBPROV_KERNEL_SUITE")
	export APT_CONFIG
fi
# Image and headers of the very same version: archives differ in what is newest.
depends() { apt-cache show --no-all-versions "$1" | sed -n 's/^Depends: //p' | tr ',' '\n' | sed -n "s/^ *\($2[^ ]*\) (= \(.*\))/\1=\2/p" | head -n 1; }
image=$(depends "$kernel_package" linux-image-)
version=${image#*=}
release=${image%%=*}
release=${release#linux-image-}
headers=linux-headers-$release
# The headers come in pieces; take those that are at the same version.
pieces=$(apt-cache depends "$headers=$version" | sed -n 's/^ *Depends: \(linux-\(headers\|kbuild\)-.*\)/\1/p' | sed "s/\$/=$version/")
kernel=$(once "kernel-$(echo "$image" | tr '=' '-')-$(describe kernel.sh | digest)" "$here/kernel.sh" "$release" "$image" "$headers=$version" $pieces)
if [ "$what" = linux ]; then
	once "linux-$( (echo "$kernel"; describe linux.sh linux-init) | digest)" "$here/linux.sh" "$kernel"
	exit 0
fi

hca=$(cd ../hca && pwd -P)
modules=$(once "modules-$( (echo "$kernel"; describe modules.sh modules.txt initrd-init "$hca") | digest)" "$here/modules.sh" "$kernel" "$hca")
once "vm-$flavour-$( (echo "$root $modules"; describe disk.sh masked.txt) | digest)" "$here/disk.sh" "$root" "$modules" "$kernel"
sweep
