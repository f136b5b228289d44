# At each stage there are as many interfaces more, and the script waits until all their
# instances wait. A line of figures for each stage:
#     INTERFACES WAITING PROCESSES CONNECTIONS MOST-CONNECTIONS PSS_KIB READS READS_AT_REST SECONDS
# CONNECTIONS are those to the system bus that were not there before, the least
# of five looks, as one that asks again is connected for a moment; READS those of the
# processes since the last stage, and READS_AT_REST those in these 5 s.
set -u
. /usr/lib/bed/iface.sh
ms() { echo $(($(date +%s%N) / 1000000)); }
bus=/run/dbus/system_bus_socket
# Sockets on the bus's side, without the one that listens.
connections() { awk -v bus=$bus '$8 == bus && $4 != "00010000" { n++ } END { print n + 0 }' /proc/net/unix; }
# A slice's folder, wherever the hierarchy of systemd is.
find_slice() { slice=$(find /sys/fs/cgroup -type d -name system-wait.slice | head -n 1); }
reads() { for pid in $(processes); do cat "/proc/$pid/io"; done 2>/dev/null | awk '$1 == "syscr:" { n += $2 } END { print n + 0 }'; }
processes() { cat "$slice"/*/cgroup.procs 2>/dev/null; }
pss() { for pid in $(processes); do cat "/proc/$pid/smaps_rollup"; done 2>/dev/null | awk '$1 == "Pss:" { n += $2 } END { print n + 0 }'; }
has_outcomes() { [ "$(ls /run/ibprov/ports 2>/dev/null | wc -l)" -ge "$1" ]; }
rests() {
	rests=$(reads)
	sleep 2
	[ $(($(reads) - rests)) -lt 1000 ]
}
# What an instance is, for interfaces without a device unit.
sed 's/--device=%f/%I/; s/%i\.device//; /^ConditionVirtualization/d; /^ExecStopPost/d; /^ExecCondition/d' \
	/usr/lib/systemd/system/ibprov-iface@.service >/run/systemd/system/wait@.service
last=$(sed 's/.* //' /usr/lib/bed/interfaces)
mkdir -p /run/systemd/network /etc/ibprov
printf '[network]\ntimeout = "30min"\n' >/etc/ibprov/ibprov.toml
n=0
while [ $n -lt "$last" ]; do
	n=$((n + 1))
	printf '[Match]\nName=ib%d\n\n[Network]\nAddress=10.%d.%d.1/24\nLinkLocalAddressing=no\n' $n $((n / 250)) $((n % 250)) >/run/systemd/network/50-ib$n.network
done
systemctl daemon-reload
/usr/lib/bed/taps 1 "$last"
systemctl start systemd-networkd.service
# It writes its records when it has nothing else to do.
is_at_all() { [ "$(grep -l '^ADMIN_STATE=configuring' /run/systemd/netif/links/* | wc -l)" -ge "$last" ]; }
within 60 is_at_all || echo "systemd-networkd is not at all of them"
# The first fills the caches, and makes the slice.
systemctl start --no-block wait@ib1.service
within 60 has_outcomes 1
find_slice
within 60 rests
none=$(connections)
systemctl is-active wait@ib1.service >"$OUT/first"
n=1
before=$(reads)
for all in $(cat /usr/lib/bed/interfaces); do
	units=
	while [ $n -lt "$all" ]; do
		n=$((n + 1))
		units="$units wait@ib$n.service"
	done
	begin=$(ms)
	most=0
	# shellcheck disable=SC2086 # words
	systemctl start --no-block $units
	until has_outcomes "$all" || [ $(($(ms) - begin)) -gt 60000 ]; do
		now=$(connections)
		[ "$now" -le $most ] || most=$now
	done
	within 60 rests || echo "$all: no rest"
	took=$((($(ms) - begin) / 1000))
	used=$(reads)
	waiting=$(systemctl list-units --no-legend --plain --state=activating 'wait@*' | wc -l)
	rest=$(reads)
	held=$(connections)
	for second in 1 2 3 4 5; do
		sleep 1
		now=$(connections)
		[ "$now" -ge "$held" ] || held=$now
	done
	rest=$(($(reads) - rest))
	echo "$all $waiting $(processes | wc -l) $((held - none)) $((most - none)) $(pss) $((used - before)) $rest $took" >>"$OUT/figures"
	before=$(reads)
done
networkctl --no-pager list >"$OUT/networkctl"
# Reads of the first, and of the last.
for name in ib1 ib$n; do
	pid=$(systemctl show -p MainPID --value wait@$name.service)
	echo "$name $(awk '$1 == "syscr:" { print $2 }' "/proc/$pid/io")" >>"$OUT/reads"
done
# Some get carrier: that they come up is seen.
/usr/lib/bed/plug ib1 ib2 ib3 ib4 &
plug=$!
begin=$(ms)
up() { for name in ib1 ib2 ib3 ib4; do is active wait@$name.service || return 1; done; }
within 60 up || echo "what has come up is not seen"
echo "seen after $(($(ms) - begin)) ms" >"$OUT/late"
kill $plug
grep -h '"bring_up"' /run/ibprov/ports/*.json | sort | uniq -c >"$OUT/ends"
