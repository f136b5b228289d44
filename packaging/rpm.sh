#!/bin/sh
# RPM packages from the source archive: ibprov and ibprov-debuginfo. Where rpm does not know
# the distribution's systemd macros, as on Debian, stand-ins are used (rpm/stand-in.macros).
# rpm.sh ARCHIVE VERSION OUT WORKSHOP
set -eu
archive=$1 version=$2 out=$3 workshop=$4
name=ibprov-$version
here=$(cd "$(dirname "$0")" && pwd)
export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
mkdir -p "$workshop"
rm -rf "${workshop:?}/$name"
SOURCE_DATE_EPOCH=$(tar -tv --full-time --utc -f "$archive" "$name/COMMIT" | awk '{ print $4 " " $5 }' | xargs -I{} date -u -d {} +%s)
# Nothing but what the archive has is built from.
export SOURCE_DATE_EPOCH CARGO_TARGET_DIR="$workshop/target" CARGO_NET_OFFLINE=true
macros=
if [ "$(rpm --eval '%{?_unitdir}')" = "" ]; then
	echo "rpm: this rpm has no systemd macros: stand-ins are used" >&2
	macros=--load=$here/rpm/stand-in.macros
fi
# Not checked (--nodeps): build tools are those of `make deps`, which rpm does not know.
# The build's host and time are not in the package.
# shellcheck disable=SC2086 # an option or none
rpmbuild -bb --nodeps $macros \
	--define "_topdir $workshop/rpm" --define "_sourcedir ${archive%/*}" --define "_builddir $workshop" \
	--define "_rpmdir $out" --define "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" \
	--define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
	--define "_buildhost localhost" --define "_binary_payload w6.xzdio" \
	"$here/rpm/ibprov.spec" >"$workshop/rpm.log" 2>&1 || {
	tail -n 40 "$workshop/rpm.log" >&2
	exit 1
}
for rpm in "$out"/*.rpm; do echo "$rpm"; done
