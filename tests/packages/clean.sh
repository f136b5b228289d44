#!/bin/sh
# The source package, as a distribution's builders build it: in a root of Debian's newest suite
# that has its Build-Depends and nothing else, with that suite's compiler, by a user who is not
# root, without a network, with its tests. Then what came of it: judged by that suite's
# lintian, installed, and tried by its own tests.
# clean.sh SUITE DSC OUT
set -eu
suite=$1 out=$3
mkdir -p "$out"
out=$(cd "$out" && pwd -P)
sources=$(cd "$(dirname "$2")" && pwd -P) dsc=$(basename "$2")
cd "$(dirname "$0")/../.."
inside() { # FLAVOUR COMMAND...
	root=$(IBPROV_ROOT_SUITE=$suite sh tests/vm/image/build.sh root "$1" | tail -n 1)/root
	shift
	unshare --net sh tests/vm/image/inside.sh "$root" "$sources" "$out" -- \
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/nonexistent LC_ALL=C.UTF-8 dsc="$sources/$dsc" out="$out" \
		DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-}" sh -euc "$1"
}
rm -rf "${out:?}/built"
mkdir "$out/built"
chown nobody "$out/built"
# shellcheck disable=SC2016 # in there
inside package '
	cd "$out/built"
	setpriv --reuid=nobody --regid=nogroup --clear-groups sh -euc "
		dpkg-source -x $dsc source
		cd source
		dpkg-buildpackage -b -uc -us"' >"$out/build.log" 2>&1 || {
	tail -n 60 "$out/build.log"
	exit 1
}
# Each target has its line.
grep '^test result:' "$out/build.log" || echo "no tests were run"

# shellcheck disable=SC2016 # in there
inside autopkgtest '
	# Made without manuals; those of the package are wanted.
	rm -f /etc/dpkg/dpkg.cfg.d/99mmdebstrap
	lintian --version
	lintian --allow-root --fail-on error,warning --tag-display-limit 0 --display-info --pedantic "$dsc" "$out"/built/*.changes
	dpkg -i "$out"/built/ibprov_*.deb
	cp -a "$out/built/source" /srv/source
	cd /srv
	HOME=/root autopkgtest --no-built-binaries --output-dir=/srv/said /srv/source -- null'
