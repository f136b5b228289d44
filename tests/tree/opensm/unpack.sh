#!/bin/sh
# unpack.sh DIR: opensm, ibsim and the diagnostics, with the libraries that are theirs, from
# the machine's package registry into DIR.
set -eu
dir=$1
[ ! -x "$dir/usr/sbin/opensm" ] || exit 0
sh tests/vm/image/need.sh iproute2 libnl-3-200 libnl-route-3-200 libwrap0
rm -rf "$dir"
mkdir -p "$dir/packages"
cd "$dir/packages"
programs='opensm ibsim-utils infiniband-diags'
# shellcheck disable=SC2086 # lists of package names
libraries=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts \
	--no-breaks --no-replaces --no-enhances $programs | grep -E '^lib(opensm|osm|ib|umad2sim)' | sort -u)
# shellcheck disable=SC2086
apt-get -q download $programs $libraries >&2
for package in *.deb; do
	dpkg-deb -x "$package" "$dir"
done
