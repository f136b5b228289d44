#!/bin/sh
# A stranger's walk: the commands of README.md in their order, in a clone of the commit that is
# checked out, in a fresh root of this machine's Debian. Each has to work as it is written. The
# Rust toolchain and the crates, which rustup and the registry give a stranger, are this
# machine's. As root.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
cd "$here/.."
work=$(mktemp -d "${TMPDIR:-/var/tmp}/walk-XXXXXX")
trap 'rm -rf "$work"' EXIT

cat >"$work/left" <<'END'
# There is no init in the root.
reboot
systemctl status ibprov
# They boot virtual machines, and run the other lanes.
make demo
make test
END
# Statuses other than 0.
cat >"$work/status" <<'END'
# There is no systemd to ask, and no port that is active.
1 ibprov collect --anonymize
1 ibprov config generate
# VFs of that node are missing, and would be created.
3 ibprov --root tests/tree/node status
1 ibprov --root tests/tree/node plan
# That boot failed.
1 ibprov check --log tests/tree/logs/openibd-disabled.log | head -12
1 ibprov check --log tests/tree/logs/openibd-disabled.log --svg boot.svg
END

[ -z "$(git status --porcelain)" ] || echo "walk: changes that are not committed are left out" >&2
git clone --quiet . "$work/ibprov"
# Commands are the lines of indented blocks, and what follows "$ " in console blocks.
awk '
	/^```/ { fenced = !fenced; kind = fenced ? substr($0, 4) : ""; if (fenced && kind !~ /^(console|toml)$/) { print "walk: a block of kind " kind >"/dev/stderr"; exit 1 }; next }
	fenced && kind == "console" && /^\$ / { print substr($0, 3) }
	!fenced && /^    [^ ]/ { print substr($0, 5) }
' "$work/ibprov/README.md" | sed 's/ *#.*//' >"$work/commands"
if sed 's/^[0-9] //; /^#/d' "$work/left" "$work/status" | grep -vxFf "$work/commands" >&2; then
	echo "walk: README.md has no such command" >&2
	exit 1
fi

cat >"$work/walk" <<'END'
work=$1 passed=0 failed=0
cd "$work/ibprov"
# To its question whether to continue, yes.
echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/walk
apt-get -q update >/dev/null
while IFS= read -r command <&3; do
	if grep -qxF -- "$command" "$work/left"; then
		echo "left out: $command"
		continue
	fi
	wanted=$(grep -xF -e "1 $command" -e "3 $command" "$work/status" | cut -c 1)
	begin=$(date +%s)
	# Here, and not in a subshell: a PATH that is set is for all that follow.
	eval "$command" >"$work/said" 2>&1 </dev/null
	status=$?
	took=$(($(date +%s) - begin))
	if [ "$status" = "${wanted:-0}" ]; then
		passed=$((passed + 1))
		echo "test $command ... ok ($took s)"
	else
		failed=$((failed + 1))
		echo "test $command ... FAILED: status $status, not ${wanted:-0} ($took s)"
		tail -n 30 "$work/said" | sed 's/^/    /'
	fi
done 3<"$work/commands"
[ "$failed" = 0 ] && result=ok || result=FAILED
echo "test result: $result. $passed passed; $failed failed"
[ "$failed" = 0 ]
END

export cargo_home="${CARGO_HOME:-$HOME/.cargo}" work here
toolchain=$(rustc --print sysroot)
root=$(sh tests/vm/image/build.sh root walk | tail -n 1)/root
cargo fetch --quiet --locked
export toolchain root
unshare --mount --propagation private sh -euc '
	for folder in "$cargo_home" "$toolchain" /sys; do
		mount --bind "$folder" "$folder"
		mount -o remount,bind,ro "$folder"
	done
	sh "$here/vm/image/inside.sh" "$root" "$cargo_home" "$toolchain" /sys "$work" -- \
		env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive CARGO_HOME="$cargo_home" CARGO_NET_OFFLINE=true \
		PATH="$toolchain/bin:/usr/sbin:/usr/bin:/sbin:/bin" bash -o pipefail "$work/walk" "$work"'
