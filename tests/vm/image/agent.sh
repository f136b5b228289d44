#!/bin/sh
# Builds the program in a root of another release, so that it runs with that release's
# C library, and prints its path. The compiler is this machine's own.
# agent.sh SUITE
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
project=$(cd "$here/../../.." && pwd -P)
target=$(mkdir -p "${CARGO_TARGET_DIR:-$project/target}/$1" && cd "${CARGO_TARGET_DIR:-$project/target}/$1" && pwd -P)
cargo_home=${CARGO_HOME:-$HOME/.cargo}
toolchain=$(rustc --print sysroot)
# Nothing is downloaded in there.
cargo fetch --quiet --locked --manifest-path "$project/Cargo.toml"
root=$(IBPROV_ROOT_SUITE=$1 sh "$here/build.sh" root build | tail -n 1)/root
sh "$here/inside.sh" "$root" "$project" "$target" "$cargo_home" "$toolchain" -- \
	env -i PATH="$toolchain/bin:/usr/bin:/bin" CARGO_HOME="$cargo_home" \
	CARGO_TARGET_DIR="$target" CARGO_NET_OFFLINE=true \
	cargo build --quiet --release --locked --manifest-path "$project/Cargo.toml" >&2
echo "$target/release/ibprov"
