# At each stage there are as many children more as there were, and the script waits until
# all their instances wait. A line of figures for each stage:
#     CHILDREN INSTANCES PROCESSES CONNECTIONS MOST-CONNECTIONS MEMORY_KIB PSS_KIB CPU_USEC AT_REST_USEC FORKS SECONDS
# CONNECTIONS are those to the system bus that are not there without children, MEMORY is
# of the instances' slice, CPU_USEC theirs since the last stage, and AT_REST_USEC theirs
# in 10 s in which all wait. How many children each stage has stands on the kernel's
# command line, bed.children=NUMBER,...
set -u
. /usr/lib/bed/vf.sh
stages=
for word in $(cat /proc/cmdline); do
	case $word in bed.children=*) stages=$(echo "${word#*=}" | tr , ' ') ;; esac
done
slice='/sys/fs/cgroup/system.slice/system-ibprov\x2diface.slice'
bus=/run/dbus/system_bus_socket
# Sockets on the bus's side, without the one that listens.
connections() { awk -v bus=$bus '$8 == bus && $4 != "00010000" { n++ } END { print n + 0 }' /proc/net/unix; }
cpu() { awk '$1 == "usage_usec" { print $2 }' "$slice/cpu.stat"; }
processes() { cat "$slice"/*/cgroup.procs 2>/dev/null; }
forks() { awk '$1 == "processes" { print $2 }' /proc/stat; }
pss() { for pid in $(processes); do cat "/proc/$pid/smaps_rollup"; done 2>/dev/null | awk '$1 == "Pss:" { n += $2 } END { print n + 0 }'; }
outcomes() { ls /run/ibprov/ports | wc -l; }
# opens NAME COMMAND...: the files that processes of ibprov open meanwhile go to
# $OUT/NAME, a line each: PID FILE.
opens() {
	opens=$1
	shift
	tracing=/sys/kernel/tracing
	mountpoint -q $tracing || mount -t tracefs tracefs $tracing
	[ -d $tracing/events/kprobes/opened ] || echo 'p:opened do_sys_openat2 file=+0(%si):ustring' >$tracing/kprobe_events
	echo 'comm == "ibprov"' >$tracing/events/kprobes/opened/filter
	: >$tracing/trace
	echo 1 >$tracing/events/kprobes/opened/enable
	"$@"
	echo 0 >$tracing/events/kprobes/opened/enable
	sed -n 's/.*ibprov-\([0-9]*\) .*file="\(.*\)"$/\1 \2/p' $tracing/trace >"$OUT/$opens"
}
has_outcomes() { [ "$(outcomes)" -ge "$1" ]; }
# Nobody has work: what they use in 3 s is that of a few looks.
rests() {
	rests=$(cpu)
	sleep 3
	[ $(($(cpu) - rests)) -lt 150000 ]
}
child() { printf 'ib0.%04x' $((0x8000 + $1)); }
network() { # NAME N
	printf '[Match]\nName=%s\n\n[Network]\nAddress=10.%d.%d.1/24\nLinkLocalAddressing=no\n' "$1" $((2 + $2 / 250)) $(($2 % 250)) >"/run/systemd/network/50-$1.network"
}
mkdir -p /run/systemd/network
network ib0 0
n=1
while [ $n -le 512 ]; do
	network "$(child $n)" $n
	n=$((n + 1))
done
udevadm settle
systemctl start systemd-networkd.service
# The port's own interface was there before, and was left to nobody.
systemctl restart "$(systemd-escape -p --template=ibprov-iface@.service "$(readlink -f /sys/class/net/ib0)")" --no-block
within 60 has_outcomes 1
within 60 rests
own=$(connections)
[ "$(processes | wc -l)" -gt 0 ] || echo "ib0's instance does not wait"
n=0
one_more() {
	n=$((n + 1))
	ip link add link ib0 name "$(child $n)" type ipoib pkey $((0x8000 + n))
	within 60 has_outcomes $((n + 1))
	within 60 rests
}
opens opened.first one_more
child $n >"$OUT/first"
before=$(cpu)
for all in $stages; do
	begin=$(uptime_ms)
	forked=$(forks)
	most=0
	rm -f /run/batch
	while [ $n -lt "$all" ]; do
		n=$((n + 1))
		echo "link add link ib0 name $(child $n) type ipoib pkey $((0x8000 + n))" >>/run/batch
	done
	ip -batch /run/batch &
	batch=$!
	until has_outcomes $((all + 1)) || [ $(($(uptime_ms) - begin)) -gt $((300000 + 5000 * all)) ]; do
		now=$(connections)
		[ "$now" -le $most ] || most=$now
		sleep 0.1
	done
	wait $batch
	udevadm settle --timeout=120
	within $((120 + all)) rests || echo "$all: no rest"
	took=$((($(uptime_ms) - begin) / 1000))
	used=$(cpu)
	forked=$(($(forks) - forked))
	now=$(connections)
	[ "$now" -le $most ] || most=$now
	running=$(systemctl list-units --no-legend --plain --state=activating 'ibprov-iface@*' | wc -l)
	rest=$(cpu)
	sleep 10
	rest=$(($(cpu) - rest))
	echo "$all $running $(processes | wc -l) $((now - own)) $((most - own)) $(($(cat "$slice/memory.current") / 1024)) $(pss) $((used - before)) $rest $forked $took" >>"$OUT/figures"
	phase "$all: $(tail -n 1 "$OUT/figures")"
	before=$(cpu)
done
ip -o link >"$OUT/links"
networkctl --no-pager list >"$OUT/networkctl"
busctl --no-pager list >"$OUT/busctl"

opens opened.last one_more
child $n >"$OUT/last"

# The subnet manager comes: what has its P_Key in the port's table comes up.
knobs 0001:01:00.0/sm=1
ended() { ! grep -q '"bring_up": "pending"' /run/ibprov/ports/*.json; }
begin=$(uptime_ms)
within $((200 + 4 * all)) ended || echo "what has come up is not seen"
echo "seen after $(($(uptime_ms) - begin)) ms" >>"$OUT/late"
grep -h '"bring_up"' /run/ibprov/ports/*.json | sort | uniq -c >"$OUT/ends"
dmesg >"$OUT/dmesg"
true
