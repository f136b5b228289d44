#!/bin/sh
# Debian packages from the source archive: ibprov and ibprov-dbgsym. The compiler is this
# machine's own, since the distribution's is older than ibprov needs.
# deb.sh ARCHIVE VERSION OUT WORKSHOP
set -eu
archive=$1 version=$2 out=$3 workshop=$4
name=ibprov-$version
# debhelper gives what it runs another home.
export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
mkdir -p "$workshop"
rm -rf "${workshop:?}/$name"
tar -x -C "$workshop" -f "$archive"
cd "$workshop/$name"
SOURCE_DATE_EPOCH=$(stat -c %Y COMMIT)
# Nothing but what the archive has is built from.
export SOURCE_DATE_EPOCH CARGO_TARGET_DIR="$workshop/target" CARGO_NET_OFFLINE=true
cp -a packaging/debian debian
cat >debian/changelog <<-END
	ibprov ($version-1) unstable; urgency=medium

	  * Commit $(cat COMMIT). Changes are in CHANGELOG.md.

	 -- $(sed -n 's/^Maintainer: //p' debian/control)  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END
# Not checked (-d): build tools are those of `make deps`, from whatever source.
LC_ALL=C.UTF-8 dpkg-buildpackage -b -uc -us -d >"$workshop/deb.log" 2>&1 || {
	tail -n 40 "$workshop/deb.log" >&2
	exit 1
}
cd ..
mv ./*.deb ./*.changes ./*.buildinfo "$out/"
for deb in "$out"/*.deb; do echo "$deb"; done
