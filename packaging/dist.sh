#!/bin/sh
# The source archive of the commit that is checked out, with the crates that it is built
# from: it builds offline. The same commit gives the same bytes.
# dist.sh VERSION OUT
set -eu
version=$1 out=$2
name=ibprov-$version
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
"${CARGO:-cargo}" vendor --quiet --locked --versioned-dirs vendor >/dev/null
mkdir -p .cargo
cat >.cargo/config.toml <<-'END'
	# The crates in vendor/ are those of Cargo.lock: nothing is downloaded.
	[source.crates-io]
	replace-with = "vendored"

	[source.vendored]
	directory = "vendor"
END
mkdir -p "$out"
tar -c -C "$work" --sort=name --mtime="@$date" --owner=0 --group=0 --numeric-owner \
	--mode=u=rwX,go=rX --format=gnu "$name" | xz -3 -T1 >"$out/.$name.tar.xz"
mv "$out/.$name.tar.xz" "$out/$name.tar.xz"
echo "$out/$name.tar.xz"
