#!/bin/sh
# fabric.sh FILE [OPTIONS]: what the opensm of this machine makes of the partitions file FILE, in a
# simulated fabric of one switch (s) and three hosts (a, b, c; opensm runs on a). One line:
# the P_Keys of each port in order, the broadcast groups as P_Key/MTU/rate, and the other
# multicast groups as MGID/MTU/rate; or `crash`.
# OPTIONS are further lines of opensm.conf. Needs what unpack.sh unpacks, in
# OPENSM_ROOT or installed.
set -eu
[ "${FABRIC_INSIDE:-}" ] || exec env FABRIC_INSIDE=1 unshare --net "$0" "$@"
file=$(realpath "$1")
options=${2:+$(realpath "$2")}
lib=${OPENSM_ROOT:-}/usr/lib/$(uname -m)-linux-gnu
sim=$lib/umad2sim/libumad2sim.so
if [ "${OPENSM_ROOT:-}" ]; then
	PATH=$OPENSM_ROOT/usr/sbin:$OPENSM_ROOT/usr/bin:$PATH
	export PATH LD_LIBRARY_PATH="$lib"
fi
work=$(mktemp -d)
pid=
trap 'exec 9>&-; [ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$work"' EXIT
ip link set lo up
# The simulated sysfs is made in the current directory.
cd "$work"
cat >"$work/net" <<'NET'
Switch	8 "s"
[1]	"a"[1]
[2]	"b"[1]
[3]	"c"[1]

Hca	1 "a"
[1]	"s"[1]

Hca	1 "b"
[1]	"s"[2]

Hca	1 "c"
[1]	"s"[3]
NET
# It reads commands from its standard input, and spins when that ends.
mkfifo "$work/commands"
exec 9<>"$work/commands"
ibsim -s "$work/net" <&9 >"$work/ibsim" 2>&1 &
pid=$!
export OSM_CACHE_DIR="$work" OSM_TMP_DIR="$work" SIM_HOST=a
echo "sa_db_dump TRUE" >"$work/opensm.conf"
[ -z "$options" ] || cat "$options" >>"$work/opensm.conf"
# It is ready when its socket is there.
try=0
until grep -q 'sim:ctl' /proc/net/unix; do
	try=$((try + 1))
	[ "$try" -lt 500 ] || { cat "$work/ibsim" >&2; exit 1; }
	sleep 0.02
done
code=0
LD_PRELOAD=$sim timeout 30 opensm -F "$work/opensm.conf" -o -P "$file" -f "$work/log" \
	>"$work/said" 2>&1 </dev/null || code=$?
if [ "$code" -ge 128 ]; then
	echo crash
	exit
fi
grep -q 'SUBNET UP' "$work/log" || { cat "$work/said" "$work/log" >&2; exit 1; }
# By the way there from a: out of its port 1, then out of a port of the switch.
keys() {
	LD_PRELOAD=$sim smpquery -D pkeys "$1" "$2" | grep -oE '0x[0-9a-f]{4}' | grep -v 0x0000 |
		sort | cut -c3- | tr '\n' ' '
}
# Of each group: its MGID, or of a broadcast group its P_Key; MTU and rate.
groups() {
	sed -n 's/^MC Group.*mgid=0x\(.*\):0x\(................\) port_gid.*mtu=0x\(..\).*rate=0x\(..\).*/\1\2 \3 \4/p' "$work/opensm-sa.dump" |
		sed 's/^ff12401b\(....\)000000000000ffffffff/\1/' | sort | grep -E "$1" |
		while read -r group mtu rate; do
			printf '%s/%d/%d ' "$group" $((0x$mtu & 63)) $((0x$rate & 63))
		done
}
printf 'a: %sb: %sc: %ss: %sgroups: %sothers: %s\n' \
	"$(keys 0 1)" "$(keys 0,1,2 1)" "$(keys 0,1,3 1)" "$(keys 0,1 0)" \
	"$(groups '^.... ')" "$(groups '^[^ ]{32} ' | sed 's/ $//')" | sed 's/ *$//'
