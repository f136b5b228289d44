#!/bin/sh
# RPM packages from the source archive: ibprov and ibprov-debuginfo. Where rpm does not know
# the distribution's macros, as on Debian, stand-ins are used (rpm/stand-in.macros and
# rpm/cargo_vendor.attr). With ARCHITECTURE, packages for another one, as CROSS of the Makefile
# has them built.
# rpm.sh ARCHIVE VERSION OUT WORKSHOP [ARCHITECTURE]
set -eu
archive=$1 version=$2 out=$3 workshop=$4 architecture=${5:-}
name=ibprov-$version
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$workshop"
rm -rf "${workshop:?}/$name"
SOURCE_DATE_EPOCH=$(tar -tv --full-time --utc -f "$archive" "$name/COMMIT" | awk '{ print $4 " " $5 }' | xargs -I{} date -u -d {} +%s)
# Nothing but what the archive has is built from.
export SOURCE_DATE_EPOCH CARGO_TARGET_DIR="$workshop/target" CARGO_NET_OFFLINE=true
set --
macros=
if [ "$(rpm --eval '%{?_unitdir}')" = "" ]; then
	echo "rpm: this rpm has no systemd macros: stand-ins are used" >&2
	macros=$here/rpm/stand-in.macros
	case $(rpm --version) in *" 4."*) macros="$macros $here/rpm/debug.macros" ;; esac
fi
if [ ! -e "$(rpm --eval '%{_fileattrsdir}')/cargo_vendor.attr" ]; then
	rm -rf "$workshop/fileattrs"
	cp -RL "$(rpm --eval '%{_fileattrsdir}')" "$workshop/fileattrs"
	cp "$here/rpm/cargo_vendor.attr" "$workshop/fileattrs/"
	macros="$macros $here/rpm/cargo_vendor.attr"
	set -- --define "_fileattrsdir $workshop/fileattrs"
fi
if [ -n "$architecture" ]; then
	# At --target, rpm forgets what it has loaded, and reads its files of macros again.
	own=$(rpm --showrc | sed -n 's/^Macro path: *//p')
	set -- "$@" --target "$architecture" --define "__strip $CROSS-strip" --define "__objdump $CROSS-objdump" \
		--macros "$own$(printf ':%s' $macros)"
else
	for file in $macros; do set -- "$@" --load="$file"; done
fi
# Not checked (--nodeps): build tools are those of `make deps`, which rpm does not know.
# The build's host and time are not in the package, and rpm 4 can read it. Other lanes run the tests.
mkdir -p "$out"
rm -f "$out"/ibprov*.rpm
rpmbuild -bb --nodeps --nocheck "$@" \
	--define "_topdir $workshop/rpm" --define "_sourcedir ${archive%/*}" --define "_builddir $workshop" \
	--define "_rpmdir $out" --define "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" \
	--define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
	--define "packager $MAINTAINER" ${HOMEPAGE:+--define "homepage $HOMEPAGE"} --define "_rpmformat 4" --define "_buildhost localhost" --define "_binary_payload w6.xzdio" \
	"$here/rpm/ibprov.spec" >"$workshop/rpm.log" 2>&1 || {
	tail -n 40 "$workshop/rpm.log" >&2
	exit 1
}
for rpm in "$out"/*.rpm; do echo "$rpm"; done
