# At each stage there are as many children more as there were, on each port as many as its
# table of P_Keys has places for, and the script waits until all wait for carrier. A line of
# figures for each stage:
#     CHILDREN WAITING PROCESSES CONNECTIONS MOST-CONNECTIONS MEMORY_KIB PSS_KIB CPU_USEC AT_REST_USEC SECONDS
# CONNECTIONS are those to the system bus that are held, and not there without children,
# MOST-CONNECTIONS those of the unit that sets them up at a time, MEMORY is that of the unit that sets them up, CPU_USEC its own since the last stage, and AT_REST_USEC
# its own in 10 s in which all wait. SECONDS pass until the settings of all are made. How many
# children each stage has stands on the kernel's command line, bed.children=NUMBER,...
set -u
. /usr/lib/bed/vf.sh
. /usr/lib/bed/pkeys.sh
group=/sys/fs/cgroup/system.slice/ibprov-children.service
bus=/run/dbus/system_bus_socket
# Sockets on the bus's side, without the one that listens.
connections() { awk -v bus=$bus '$8 == bus && $4 != "00010000" { n++ } END { print n + 0 }' /proc/net/unix; }
# Those that the unit's process has: the bus closes its side of one later.
own_connections() {
	ss -xpH | awk -v pid="pid=$main," '
		$5 ~ /system_bus_socket/ { bus[$6] = 1 }
		index($0, pid) { peers[$8] = 1 }
		END { for (peer in peers) n += peer in bus; print n + 0 }'
}
cpu() { awk '$1 == "usage_usec" { print $2 }' "$group/cpu.stat"; }
processes() { cat $group/cgroup.procs; }
pss() { for pid in $(processes); do cat "/proc/$pid/smaps_rollup"; done 2>/dev/null | awk '$1 == "Pss:" { n += $2 } END { print n + 0 }'; }
# Starts no process: nothing of the kind is done beside the probe without ibprov.
has_outcomes() {
	set -- "$1" /run/ibprov/ports/*.json
	[ $# -gt "$1" ]
}
# Nobody has work: what they use in 3 s is that of a look of each, and none asks over the bus.
rests() {
	rests=$(cpu)
	sleep 3
	[ $(($(cpu) - rests)) -lt $((150000 + 5000 * n)) ] && [ "$(connections)" -le "$own" ]
}
networks
udevadm settle
systemctl start systemd-networkd.service
# The ports' own interfaces were there before, and were left to nobody.
for port in /sys/class/net/ib?; do
	systemctl restart "$(systemd-escape -p --template=ibprov-iface@.service "$(readlink -f "$port")")" --no-block
done
n=0 own=9999
within 60 has_outcomes $ports
own=$(connections)
# The first fills the caches, and makes the unit's group.
create 1
within 60 has_outcomes $((n + ports))
within 60 rests || echo "the first does not rest"
own=$(connections)
before=$(cpu)
for all in $stages; do
	begin=$(uptime_ms)
	most=0 main=$(systemctl show -P MainPID ibprov-children.service)
	create "$all" &
	batch=$!
	until has_outcomes $((all + ports)) || [ $(($(uptime_ms) - begin)) -gt $((300000 + 2000 * all)) ]; do
		now=$(own_connections)
		[ "$now" -le $most ] || most=$now
	done
	took=$((($(uptime_ms) - begin) / 1000))
	wait $batch
	n=$all
	within $((120 + all)) rests || echo "$all: no rest"
	used=$(cpu)
	waiting=$(grep -l '"bring_up": "pending"' /run/ibprov/ports/*.json | wc -l)
	rest=$(cpu)
	# One of many asks its stack again now and then: those that are never less are held.
	held=9999 alone=9999
	for second in 1 2 3 4 5 6 7 8 9 10; do
		sleep 1
		now=$(connections)
		[ "$now" -ge $held ] || held=$now
		now=$(processes | wc -l)
		[ "$now" -ge $alone ] || alone=$now
	done
	rest=$(($(cpu) - rest))
	echo "$all $((waiting - ports)) $alone $((held - own)) $most $(($(cat "$group/memory.current") / 1024)) $(pss) $((used - before)) $rest $took" >>"$OUT/figures"
	phase "$all: $(tail -n 1 "$OUT/figures")"
	for who in init.scope system.slice/dbus.service system.slice/systemd-networkd.service system.slice/systemd-udevd.service system.slice/systemd-journald.service; do
		echo "$all ${who##*/} $(sed -n 's/^usage_usec //p' "/sys/fs/cgroup/$who/cpu.stat")" >>"$OUT/others"
	done
	before=$(cpu)
done
systemctl stop prober.service
cp /run/probes "$OUT/probes"
ip -o link >"$OUT/links"
networkctl --no-pager list >"$OUT/networkctl"
busctl --no-pager list >"$OUT/busctl"

# The subnet manager comes, and with it all.
for device in /sys/class/infiniband/*/device; do knobs "$(target "$device")/sm=1"; done
ended() { ! grep -q '"bring_up": "pending"' /run/ibprov/ports/*.json; }
begin=$(uptime_ms)
within $((200 + 4 * all)) ended || echo "what has come up is not seen"
echo "seen after $(($(uptime_ms) - begin)) ms" >>"$OUT/late"
grep -h '"bring_up"' /run/ibprov/ports/*.json | sort | uniq -c >"$OUT/ends"
dmesg >"$OUT/dmesg"
true
