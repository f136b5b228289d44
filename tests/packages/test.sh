#!/bin/sh
# The release of the commit that is checked out: built twice, in different folders, and
# compared; read for what is of this machine; linted; run by qemu where it is for another
# architecture; installed, upgraded, downgraded and removed in roots of this machine's release
# and of Debian 13, with dpkg and with rpm. As root.
# test.sh VERSION SUITE ARCHITECTURE...
set -eu
version=$1 suite=$2
shift 2
foreign=$*
cd "$(dirname "$0")/../.."
project=$PWD
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd -P)
first=$target/packages
work=$(mktemp -d "${TMPDIR:-/var/tmp}/packages-XXXXXX")
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8
passed=0 failed=0

# check WHAT COMMAND...: one test.
check() {
	what=$1
	shift
	if "$@" >"$work/said" 2>&1; then
		passed=$((passed + 1))
		echo "test $what ... ok"
	else
		failed=$((failed + 1))
		echo "test $what ... FAILED"
		sed 's/^/    /' "$work/said"
	fi
}

# --- built twice
rm -rf "$first"
make --no-print-directory dist-release packages="$first" foreign="$foreign"
git clone --quiet . "$work/another place"
mv "$work/another place" "$work/elsewhere"
(cd "$work/elsewhere" && CARGO_TARGET_DIR=$work/t make --no-print-directory dist-release packages="$work/second" foreign="$foreign")
# Of each architecture four packages.
same() {
	diff -r "$first/release" "$work/second/release" && (cd "$first/release" && sha256sum --check --quiet SHA256SUMS) &&
		[ "$(ls "$first/release" | wc -l)" = $((5 + 4 + 4 * $(echo "$foreign" | wc -w))) ]
}
check "two releases of one commit are byte-identical" same
source_same() { for file in "$first"/*.dsc "$first"/*.debian.tar.xz; do cmp "$file" "$work/second/${file##*/}" || return 1; done; }
check "so are the source packages" source_same

# --- what is in them
deb=$(ls "$first"/ibprov_*.deb) dbgsym=$(ls "$first"/ibprov-dbgsym_*.deb)
rpm=$(ls "$first"/ibprov-"$version"*.rpm) debuginfo=$(ls "$first"/ibprov-debuginfo-*.rpm)
mkdir "$work/open"
for package in "$deb" "$dbgsym"; do dpkg-deb -x "$package" "$work/open/${package##*/}"; done
for package in "$rpm" "$debuginfo"; do
	mkdir -p "$work/open/${package##*/}"
	(cd "$work/open/${package##*/}" && rpm2cpio "$package" | cpio -idm --quiet)
done
for architecture in $foreign; do
	dpkg-deb -x "$first/$architecture"/ibprov_*.deb "$work/open/$architecture.deb"
	mkdir "$work/open/$architecture.rpm"
	(cd "$work/open/$architecture.rpm" && rpm2cpio "$first/$architecture"/ibprov-"$version"-*.rpm | cpio -idm --quiet)
done
mkdir "$work/open/archive"
tar -x -C "$work/open/archive" -f "$first/ibprov-$version.tar.xz"
# Debug sections are compressed, and so are manuals.
find "$work/open" -name '*.debug' -exec objcopy --decompress-debug-sections {} \;
find "$work/open" -path '*/archive' -prune -o -name '*.gz' -type f -exec gunzip -f {} \;
unknown() { # WORD [GREP_OPTION]
	found=$(grep -rlaF ${2:-} -- "$1" "$work/open" | sed "s,$work/open/,," | head -n 5)
	[ -z "$found" ] || { echo "$1 is in $found" && return 1; }
}
for path in "$project" "$target" "$work" "${CARGO_HOME:-$HOME/.cargo}" "$HOME/.rustup" "$(rustc --print sysroot)"; do
	check "$path is in none of them" unknown "$path"
done
# Of a host name that the sources have, nothing is known.
if grep -rqwF -- "$(uname -n)" "$work/open/archive"; then
	check "the build's host is not told" sh -c "! rpm -qp --qf '%{BUILDHOST}' '$rpm' | grep -wF -- '$(uname -n)'"
else
	check "the host name is in none of them" unknown "$(uname -n)" -w
fi
has_all() { # LIST
	sed 's,^\./,/,' "$1" >"$1.files"
	for file in sbin/ibprov lib/ibprov/ibprov.toml lib/ibprov/host lib/systemd/system/ibprov.service \
		lib/systemd/system-preset/90-ibprov.preset lib/systemd/catalog/ibprov.catalog lib/udev/rules.d/90-ibprov.rules \
		share/man/man8/ibprov.8 share/man/man8/ibprov-plan.8 share/man/man5/ibprov.toml.5 share/man/man5/ibprov.d.5 \
		share/bash-completion/completions/ibprov share/zsh/site-functions/_ibprov share/fish/vendor_completions.d/ibprov.fish \
		share/ibprov/schema/ibprov.toml.json share/ibprov/schema/reports.json \
		share/doc/ibprov/examples/libvirt-qemu-hook share/doc/ibprov/examples/after-ports.conf \
		share/doc/ibprov/ibprov.cdx.json share/doc/ibprov/ansible/site.yml share/doc/ibprov/field-trial.sh \
		share/doc/ibprov/prometheus/ibprov.dashboard.json lib/dracut/modules.d/50ibprov/module-setup.sh \
		share/initramfs-tools/hooks/ibprov; do
		grep -qE "^/usr/$file(\.gz)?\$" "$1.files" || { echo "no /usr/$file" && return 1; }
	done
	grep -q '^/usr/share/doc/ibprov/licences-of-crates.txt' "$1.files"
}
dpkg-deb --fsys-tarfile "$deb" | tar -t >"$work/deb.list"
rpm -qlp "$rpm" >"$work/rpm.list"
check "the Debian package has all" has_all "$work/deb.list"
check "the RPM has all" has_all "$work/rpm.list"
links_work() { # LIST
	for page in diagnoses.md faq.md field-trial.md; do
		{ echo "$page" && sed 's/](/\n](/g' "docs/$page" | sed -n 's/^](\([^)#:]*\).*/\1/p'; } | while read -r link; do
			[ -z "$link" ] || grep -qxF "/usr/share/doc/ibprov/$link" "$1.files" || echo "$page: $link"
		done
	done >"$work/broken"
	cat "$work/broken" && [ ! -s "$work/broken" ]
}
check "the links of its pages work" links_work "$work/deb.list"
check "those of the RPM's work" links_work "$work/rpm.list"
program=$work/open/${deb##*/}/usr/sbin/ibprov
# Rust has neither stack protector nor fortified functions: it checks bounds itself. Of
# control-flow protection its stable compiler has none.
check "the program is hardened" hardening-check --nostackprotector --nofortify --nocfprotection "$program"
# A function with a large frame touches its pages one by one.
check "its stack does not clash" sh -c "objdump -d --no-show-raw-insn '$program' | grep -q 'sub  *\$0x1000,%rsp'"
commit=$(git rev-parse --short=12 HEAD)
check "the program says version, commit and target" sh -c "'$program' --version | grep -x 'ibprov $version (commit $commit, $(uname -m)-linux-gnu)'"
built_alone() { # the archive, where there is neither git nor a network
	(cd "$work/open/archive/ibprov-$version" && CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=$work/alone cargo metadata --locked --offline --format-version 1 >/dev/null) &&
		[ "$(cat "$work/open/archive/ibprov-$version/COMMIT")" = "$commit" ]
}
check "the archive has what it is built from" built_alone
crates_named() { # in the archive's copyright file, all; in the RPM, those that are linked
	for crate in "$work/open/archive/ibprov-$version"/vendor/*; do
		grep -qxF "Files: vendor/${crate##*/}/*" "$work/open/archive/ibprov-$version/packaging/debian/copyright" || { echo "not named: $crate" && return 1; }
	done
	rpm -qp --provides "$rpm" | sed -n 's/^bundled(crate(\(.*\))) = \(.*\)/\1 \2/p' | LC_ALL=C sort >"$work/bundled"
	sh packaging/crates.sh | cut -d ' ' -f 1,2 | sed 's/+.*//' | LC_ALL=C sort | diff "$work/bundled" -
}
check "the packages name the crates that they have" crates_named
check "no library that somebody built is in the archive" sh -c "! find '$work/open/archive' -name '*.a' -o -name '*.lib' -o -name '*.dll' -o -name '*.so' | grep ."
for architecture in $foreign; do
	cpu=$(dpkg-architecture -a "$architecture" -q DEB_HOST_GNU_CPU 2>/dev/null)
	check "the program of $architecture says what this one says" sh tests/packages/foreign.sh "$suite" "$deb" "$first/$architecture"/ibprov_*.deb "$cpu"
	sed -n 's/^test result: .* \([0-9]*\) passed.*/    \1 commands/p' "$work/said"
done
check "lintian is content" lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$deb" "$dbgsym"
check "rpmlint is content" sh -c "rpmlint -r packaging/rpm/rpmlintrc '$rpm' '$debuginfo'"

# --- what they do to a host
# The same trees with a lower version, which a site has before.
dpkg-deb -R "$deb" "$work/lower"
sed -i 's/^Version: .*/Version: 0.0.9-1/' "$work/lower/DEBIAN/control"
dpkg-deb -b "$work/lower" "$work/lower.deb" >/dev/null
{
	printf '%s\n' '%define debug_package %{nil}' '%define __os_install_post %{nil}' '%define _build_id_links none'
	sed -e 's/^Version: .*/Version: 0.0.9/' -e '/^%prep/,/^make check/d' -e '/^%changelog/,$d' \
		-e 's,^%license.*,/usr/share/licenses/*,' -e 's,^%doc.*,/usr/share/doc/ibprov-*,' packaging/rpm/ibprov.spec
	printf '%s\n' '/usr/lib/.build-id' '%install' "cp -a '$work/lower-tree/.' %{buildroot}/"
} >"$work/lower.spec"
mkdir "$work/lower-tree"
(cd "$work/lower-tree" && rpm2cpio "$rpm" | cpio -idm --quiet)
rpmbuild -bb --nodeps --load=packaging/rpm/stand-in.macros --define "_topdir $work/lower-rpm" \
	--define "_rpmdir $work" --define "_rpmfilename lower.rpm" "$work/lower.spec" >"$work/lower.log" 2>&1 ||
	{ cat "$work/lower.log" && exit 1; }
# What is built on Debian 12 is for Debian 13 too.
. /etc/os-release
case $VERSION_CODENAME in
bookworm) suites="bookworm trixie" ;;
*) suites=$VERSION_CODENAME ;;
esac
for suite in $suites; do
	root=$(IBPROV_ROOT_SUITE=$suite sh tests/vm/image/build.sh root base | tail -n 1)/root
	for scene in tests/packages/scenes/*.sh; do
		for kind in deb rpm; do
			check "$suite, $kind: $(basename "$scene" .sh)" env root="$root" work="$work" deb="$deb" rpm="$rpm" kind="$kind" \
				unshare --mount --propagation private sh -eu tests/packages/host.sh "$scene"
		done
	done
done

[ "$failed" = 0 ] && result=ok || result=FAILED
echo "test result: $result. $passed passed; $failed failed"
[ "$failed" = 0 ]
