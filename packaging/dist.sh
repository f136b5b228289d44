#!/bin/sh
# The source archive of the commit that is checked out, with the crates that it is built
# from: it builds offline. The same commit gives the same bytes.
# dist.sh VERSION OUT
set -eu
version=$1 out=$2
name=ibprov-$version
cargo=${CARGO:-cargo}
if [ ! -e .git ]; then
	echo "dist: there is no git repository here: the archive is made from a commit" >&2
	exit 1
fi
[ -z "$(git status --porcelain)" ] || echo "dist: changes that are not committed are left out" >&2
commit=$(git rev-parse --short=12 HEAD)
date=$(git log -1 --format=%ct)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive --format=tar --prefix="$name/" HEAD | tar -x -C "$work"
cd "$work/$name"
echo "$commit" >COMMIT
"$cargo" vendor --quiet --locked --versioned-dirs vendor >/dev/null
mkdir -p .cargo
cat >.cargo/config.toml <<-'EOF'
	# The crates in vendor/ are those of Cargo.lock: nothing is downloaded.
	[source.crates-io]
	replace-with = "vendored"

	[source.vendored]
	directory = "vendor"
EOF

# Of crates that no Linux needs, cargo reads the manifest alone. Their rest, libraries for
# Windows among it that nobody can build again, is no part of the source.
linux=$(for arch in aarch64 powerpc64le riscv64gc s390x x86_64; do echo "--target=$arch-unknown-linux-gnu"; done)
# shellcheck disable=SC2086 # a list of options
"$cargo" tree --quiet --locked --offline $linux --prefix none --format '{p}' |
	sed 's/^\([^ ]*\) v\([^ ]*\).*/\1-\2/' | LC_ALL=C sort -u >"$work/needed"
for crate in vendor/*; do
	! grep -qxF "${crate#vendor/}" "$work/needed" || continue
	find "$crate" -mindepth 1 ! -path "$crate/Cargo.toml" ! -path "$crate/.cargo-checksum.json" -delete
	mkdir "$crate/src"
	echo "// No Linux needs this crate: only its manifest is here." >"$crate/src/lib.rs"
	sed -i 's/"files":{[^}]*}/"files":{}/' "$crate/.cargo-checksum.json"
done
sh packaging/copyright.sh >>packaging/debian/copyright
sh packaging/crates.sh vendored >cargo-vendor.txt

mkdir -p "$out"
tar -c -C "$work" --sort=name --mtime="@$date" --owner=0 --group=0 --numeric-owner \
	--mode=u=rwX,go=rX --format=gnu "$name" | xz -3 -T1 >"$out/.$name.tar.xz"
mv "$out/.$name.tar.xz" "$out/$name.tar.xz"
echo "$out/$name.tar.xz"
