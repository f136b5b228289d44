#!/bin/sh
# Packages for another architecture than this machine's, built without a network in a root of
# SUITE, whose compiler, libraries and rpm are used. As root.
# cross.sh SUITE ARCHIVE VERSION OUT WORKSHOP ARCHITECTURE
set -eu
suite=$1 archive=$2 version=$3 out=$4 workshop=$5 architecture=$6
here=$(cd "$(dirname "$0")" && pwd -P)
gnu=$(dpkg-architecture -a "$architecture" -q DEB_HOST_GNU_TYPE 2>/dev/null)
root=$(IBPROV_ROOT_SUITE=$suite sh "$here/../tests/vm/image/build.sh" root cross | tail -n 1)/root
mkdir -p "$out" "$workshop"
sources=$(dirname "$archive")
for kind in deb rpm; do
	[ "$kind" = deb ] && name=$architecture || name=${gnu%%-*}
	unshare --net sh "$here/../tests/vm/image/inside.sh" "$root" "$here" "$sources" "$out" "$workshop" -- \
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 CARGO_HOME="$workshop/cargo-home" CROSS="$gnu" \
		MAINTAINER="$MAINTAINER" HOMEPAGE="${HOMEPAGE:-}" \
		sh "$here/$kind.sh" "$archive" "$version" "$out" "$workshop" "$name"
done
