#!/bin/sh
# Builds the program in a root of another release, so that it runs with that release's
# C library, and prints its path. The compiler is this machine's own.
# agent.sh SUITE
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
project=$(cd "$here/../../.." && pwd -P)
target=$(mkdir -p "${CARGO_TARGET_DIR:-$project/target}" && cd "${CARGO_TARGET_DIR:-$project/target}" && pwd -P)
cargo_home=${CARGO_HOME:-$HOME/.cargo}
toolchain=$(rustc --print sysroot)
root=$(IBPROV_ROOT_SUITE=$1 sh "$here/build.sh" root build | tail -n 1)/root
# Nothing is downloaded in there.
cargo fetch --quiet --locked --manifest-path "$project/Cargo.toml"
mkdir -p "$target/$1"
# The root is shared by whoever builds: what is mounted and made stays in this namespace.
export here project target cargo_home toolchain root suite="$1"
unshare --mount --propagation private sh -eu <<-'EOF' >&2
	top=$(mktemp -d)
	mount -t tmpfs none "$top"
	mkdir "$top/upper" "$top/work" "$top/root"
	mount -t overlay -o "lowerdir=$root,upperdir=$top/upper,workdir=$top/work" none "$top/root"
	put() { # FROM TO
		mkdir -p "$top/root$2"
		mount --bind "$1" "$top/root$2"
	}
	put "$project" /ibprov
	put "$target/$suite" /target
	put "$cargo_home" /cargo
	put "$toolchain" /rust
	put /dev /dev
	mount -t proc proc "$top/root/proc"
	exec chroot "$top/root" env -i PATH=/rust/bin:/usr/bin:/bin CARGO_HOME=/cargo \
		CARGO_TARGET_DIR=/target CARGO_NET_OFFLINE=true \
		cargo build --quiet --release --locked --manifest-path /ibprov/Cargo.toml
EOF
echo "$target/$1/release/ibprov"
