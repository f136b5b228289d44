#!/bin/sh
# The program of another architecture's package, run by qemu on inputs of the tree lane: it
# prints what the program of this machine's package prints, and ends as it does.
# foreign.sh SUITE DEB FOREIGN_DEB CPU
set -eu
suite=$1 deb=$(realpath "$2") foreign=$(realpath "$3") cpu=$4
cd "$(dirname "$0")/../.."
work=$(mktemp -d "${TMPDIR:-/var/tmp}/foreign-XXXXXX")
trap 'rm -rf "$work"' EXIT
dpkg-deb -x "$deb" "$work/own"
dpkg-deb -x "$foreign" "$work/foreign"
cp -a tests/tree "$work/tree"
cat >"$work/compare" <<'END_OF_COMPARE'
cd "$1/tree"
cpu=$2 same=0 other=0
# both ARGUMENT...
both() {
	own=0 foreign=0
	../own/usr/sbin/ibprov "$@" >../own.said 2>&1 || own=$?
	"qemu-$cpu" ../foreign/usr/sbin/ibprov "$@" >../foreign.said 2>&1 || foreign=$?
	if [ "$own" = "$foreign" ] && [ -s ../own.said ] && cmp -s ../own.said ../foreign.said; then
		same=$((same + 1))
		echo "test $cpu: ibprov $* (exit status $own) ... ok"
	else
		other=$((other + 1))
		echo "test $cpu: ibprov $* ... FAILED: exit status $own and $foreign"
		diff ../own.said ../foreign.said || :
	fi
}
"qemu-$cpu" ../foreign/usr/sbin/ibprov --version
for format in text json; do
	both --root node status --format "$format"
	both --root node plan --format "$format"
	both --root node config check --format "$format"
	both --root node check --format "$format"
	for log in $(find logs -name "*.log" | LC_ALL=C sort); do both check --log "$log" --format "$format"; done
done
both --root node status -v
both --root node metrics
both config show
both completions bash
[ "$other" = 0 ] && result=ok || result=FAILED
echo "test result: $result. $same passed; $other failed"
[ "$other" = 0 ]
END_OF_COMPARE
root=$(IBPROV_ROOT_SUITE=$suite sh tests/vm/image/build.sh root cross | tail -n 1)/root
unshare --net sh tests/vm/image/inside.sh "$root" "$work" -- \
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 sh -eu "$work/compare" "$work" "$cpu"
