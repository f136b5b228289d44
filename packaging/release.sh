#!/bin/sh
# A release in one folder, of packages that were built: they, the source archive, the bill of
# materials, the notes and the text of the tag, both from CHANGELOG.md, and checksums.
# release.sh VERSION COMMIT PACKAGES OUT [ARCHITECTURE...]
set -eu
version=$1 commit=$2 packages=$3 out=$4
shift 4
cd "$(dirname "$0")/.."
notes() { awk -v head="## $version (" '/^## / { on = index($0, head) == 1; next } on'; }
if [ "$(notes <CHANGELOG.md | wc -l)" = 0 ]; then
	echo "release: CHANGELOG.md has no section \"## $version (DATE)\"" >&2
	exit 1
fi
rm -rf "$out"
mkdir -p "$out"
cp "$packages/ibprov-$version.tar.xz" "$packages"/*.deb "$packages"/*.rpm "$out/"
for architecture; do cp "$packages/$architecture"/*.deb "$packages/$architecture"/*.rpm "$out/"; done
sh packaging/sbom.sh "$version" "$commit" >"$out/ibprov-$version.cdx.json"
notes <CHANGELOG.md | sed '1{/^$/d}' >"$out/NOTES.md"
# What stands before the first heading: git tag -s -F TAG v$version $commit
{ echo "ibprov $version" && echo && sed '/^### /,$d' "$out/NOTES.md"; } | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' >"$out/TAG"
(cd "$out" && sha256sum -- * >SHA256SUMS)
for file in "$out"/*; do echo "$file"; done
