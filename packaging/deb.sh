#!/bin/sh
# Debian packages from the source archive: the source package, ibprov and ibprov-dbgsym. Their
# maintainer is MAINTAINER, their sources are at HOMEPAGE, if that is set (packages.mk). With
# ARCHITECTURE, packages for another one.
# deb.sh ARCHIVE VERSION OUT WORKSHOP [ARCHITECTURE]
set -eu
case ${MAINTAINER:-} in
*\ \<*@*\>) ;;
*)
	echo "deb: who maintains the package? make deb MAINTAINER='Name <name@site.org>'" >&2
	exit 1
	;;
esac
archive=$1 version=$2 out=$3 workshop=$4 architecture=${5:-}
name=ibprov-$version
# debhelper gives what it runs another home; where rustup's compiler is used, it is in this one.
[ ! -d "$HOME/.rustup" ] || export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
# Other lanes run the tests: DEB_BUILD_OPTIONS= runs them here too.
export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-nocheck}"
mkdir -p "$workshop"
rm -rf "${workshop:?}/$name" "$workshop"/ibprov*_*
tar -x -C "$workshop" -f "$archive"
cp "$archive" "$workshop/ibprov_$version.orig.tar.xz"
cd "$workshop/$name"
SOURCE_DATE_EPOCH=$(stat -c %Y COMMIT)
export SOURCE_DATE_EPOCH CARGO_TARGET_DIR="$workshop/target"
cp -a packaging/debian debian
awk '
	/^Maintainer: / { print "Maintainer: " ENVIRON["MAINTAINER"]; next }
	/^Standards-Version: / && ENVIRON["HOMEPAGE"] { print "Homepage: " ENVIRON["HOMEPAGE"] "\nVcs-Browser: " ENVIRON["HOMEPAGE"] "\nVcs-Git: " ENVIRON["HOMEPAGE"] }
	{ print }' packaging/debian/control >debian/control
# A distribution's own package, whose revision is 1 or higher, takes the place of this one.
cat >debian/changelog <<-EOF
	ibprov ($version-0ibprov1) unstable; urgency=medium

	  * Package of the project itself, of commit $(cat COMMIT).
	  * What is new is in the changelog of the program.

	 -- $MAINTAINER  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
EOF
if [ -n "$architecture" ]; then
	set -- -b "-a$architecture" -Pcross,nocheck
else
	set -- -F
fi
# rustup's compiler, which is no package, fulfils no Build-Depends.
[ "$(command -v cargo)" = /usr/bin/cargo ] || set -- "$@" -d
LC_ALL=C.UTF-8 dpkg-buildpackage "$@" -uc -us >"$workshop/deb.log" 2>&1 || {
	tail -n 40 "$workshop/deb.log" >&2
	exit 1
}
cd ..
mkdir -p "$out"
# Those of an earlier commit.
rm -f "$out"/ibprov_* "$out"/ibprov-dbgsym_*
[ -n "$architecture" ] || mv ./*.dsc ./*.debian.tar.xz ./*.orig.tar.xz "$out/"
mv ./*.deb ./*.changes ./*.buildinfo "$out/"
for deb in "$out"/*.deb; do echo "$deb"; done
