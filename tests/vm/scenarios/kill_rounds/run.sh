set -u
. /usr/lib/bed/vf.sh
pf=0001:01:00.0
group=/sys/fs/cgroup/round
seed=1 nth=0 first=1 rounds=100
for word in $(cat /proc/cmdline); do
	case $word in
	bed.seed=*) seed=${word#*=} ;;
	bed.nth=*) nth=${word#*=} ;;
	bed.first=*) first=${word#*=} ;;
	bed.rounds=*) rounds=${word#*=} ;;
	esac
done
# Nobody but this script runs ibprov.
for unit in ibprov-pf@ ibprov-iface@; do ln -s /dev/null "/run/systemd/system/$unit.service"; done
systemctl daemon-reload
mkdir -p "$group"

has_rdma() { ls "$pci/$pf"/infiniband/* >/dev/null 2>&1; }
has_netdev() { [ -e /sys/class/net/ib0 ] && ls "$pci/$pf"/net/ib0 >/dev/null 2>&1; }
bind_anew() {
	echo $pf >/sys/bus/pci/drivers/mlx5_core/unbind
	echo $pf >/sys/bus/pci/drivers/mlx5_core/bind
}
# What the host is like, by the kernel's own words. That of a PF begins with a QPN.
host() {
	facts $pf
	for index in 0 1; do
		echo "VF $index: $(cd "$pci/$pf/virtfn$index" 2>/dev/null && echo infiniband/* net/*)"
	done
	ip link show ib0 2>/dev/null | sed -n 's/^ *\(vf [0-9]*\).*\(NODE_GUID.*\)/\1 \2/p'
	for file in mtu umcast; do
		first value "/sys/class/net/ib0/$file"
		echo "ib0 $file: $value"
	done
	ip -d link show ib0.8001 | sed -n 's/.*ipoib pkey *\(0x[0-9a-f]*\).*/ib0.8001: \1/p'
	echo "guests: $(systemctl is-active guest@0.service guest@1.service | tr '\n' ' ')"
}
no_process() { [ -z "$(cat "$group/cgroup.procs")" ]; }
# What ibprov must not leave behind.
left() {
	within 20 no_process || for pid in $(cat "$group/cgroup.procs"); do
		echo "left: process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done
	for file in /run/ibprov/pf/*.undo /run/ibprov/.*.[0-9]* /run/ibprov/*/.*.[0-9]* /etc/ibprov/.*.[0-9]*; do
		[ ! -e "$file" ] || echo "left: $file"
	done
	for lock in /run/ibprov/lock/*; do
		[ ! -e "$lock" ] || flock --nonblock "$lock" true || echo "left: $lock is held"
	done
	[ ! -s /run/gate ] || sed 's/^/gate: /' /run/gate
}
# start LOG COMMAND...: ibprov in the group; its process is $ibprov.
start() {
	log=$1
	shift
	sh -c "echo \$\$ >$group/cgroup.procs; exec \"\$@\"" - "$@" >"$log" 2>&1 &
	ibprov=$!
}
command_of() { # VERB [WHOLE]: of iface the settings alone, or the whole of it
	case $1-${2:-no} in
	# No network stack of this host has a configuration for ib0, so that the whole is
	# little more: the question who is in charge, and a message that nobody is.
	iface-yes) echo ibprov iface ib0 ;;
	iface-no) echo ibprov iface ib0 --settings-only ;;
	*) echo "ibprov $1" ;;
	esac
}
run() { # VERB: to its end
	# guests waits for ever for a VF that is not right.
	start "/run/log.$1" timeout 90 $(command_of "$1")
	wait "$ibprov"
}
clean() { # one run of each verb; $codes
	codes=
	for verb in boot apply iface guests; do
		run $verb
		codes="$codes $?"
	done
}
timed() { # VERB: how long a run takes that has all to do, $takes_VERB in ms
	before=$(uptime_ms)
	run "$1" || { echo "$1 alone: $?"; sed "s/^/$1: /" "/run/log.$1"; host; } >>"$OUT/wrong"
	eval "takes_$1=$(($(uptime_ms) - before))"
}
disturb() {
	case $1 in
	nothing) ;;
	none) echo 0 >"$pci/$pf/sriov_numvfs" ;;
	one) echo 0 >"$pci/$pf/sriov_numvfs"; echo 1 >"$pci/$pf/sriov_numvfs" ;;
	guid) ip link set ib0 vf 1 port_guid 02:00:00:00:00:00:be:ef ;;
	policy) ip link set ib0 vf 0 state enable ;;
	unbound) echo "$(vf $pf 0)" >/sys/bus/pci/drivers/mlx5_core/unbind ;;
	ipoib) modprobe -r ib_ipoib ;;
	half) for device in "$pci/$pf"/virtfn1/mlx5_core.rdma.*; do
		echo "${device##*/}" >/sys/bus/auxiliary/drivers/mlx5_ib.rdma/unbind
	done ;;
	interface) echo 0 >/sys/class/net/ib0/umcast; ip link set ib0 mtu 2000; ip link del ib0.8001 ;;
	anew) bind_anew; within 20 has_netdev ;;
	esac
}
fault() { # NAME on|off
	case $1-$2 in
	slow-on) knobs "*/slow=15" ;;
	slow-off) knobs "*/slow=0" ;;
	lost-on) knobs "$pf+vf/drop.INIT_HCA=1" ;;
	lost-off) knobs "$pf+vf/drop.INIT_HCA=0" ;;
	# Not so long that the driver takes the card for dead, which is after 6 s.
	silent-on) { knobs "$pf/silent=1"; sleep 2; knobs "$pf/silent=0"; } & silence=$! ;;
	silent-off) wait "$silence" ;;
	pages-on) knobs "$pf/fail.MANAGE_PAGES=0:9" ;;
	pages-off)
		# A VF without its pages stays without until its PF enables it anew.
		knobs "$pf/fail.MANAGE_PAGES=9999"
		echo 0 >"$pci/$pf/sriov_numvfs"
		;;
	probe-on) knobs "$pf+vf/fail.INIT_HCA=0:4" ;;
	probe-off) knobs "$pf+vf/fail.INIT_HCA=9999" ;;
	half-on) knobs "$pf+vf/fail.ALLOC_XRCD=0:4" ;;
	half-off) knobs "$pf+vf/fail.ALLOC_XRCD=9999" ;;
	dropped-on) knobs "$pf/guid_write=drop" "$pf/policy_write=drop" ;;
	refused-on) knobs "$pf/guid_write=4" "$pf/policy_write=3" ;;
	dropped-off | refused-off) knobs "$pf/guid_write=ok" "$pf/policy_write=ok" ;;
	stale-on) knobs "$pf+vf/latch=stale" ;;
	stale-off) knobs "$pf+vf/latch=fresh" ;;
	link-on) knobs "$pf/link=down" ;;
	link-off) knobs "$pf/link=active" ;;
	syndrome-on) knobs "$pf/syndrome=1" ;;
	syndrome-off)
		# The driver resets the card; from a second syndrome within a minute it does not
		# recover, and whoever is in charge binds it anew.
		knobs "$pf/syndrome=0"
		within 6 no_rdma
		within 15 has_netdev || bind_anew
		within 20 has_netdev
		;;
	esac
}
# no_guest_starts: no job for a guest is left. Where systemd's jobs cannot be listed, one is.
no_guest_starts() { jobs=$(systemctl list-jobs --no-legend 'guest@*') && [ -z "$jobs" ]; }
no_rdma() { ! has_rdma; }
# choose: what this round is; the same for the same seed and round.
choose() {
	# Two machines of a run have rounds of their own.
	awk -v seed="$((2 * seed + nth))" -v round="$1" '
	function one(words, n, w) { n = split(words, w, " "); return w[1 + int(rand() * n)] }
	BEGIN {
		srand(seed * 10007 + round)
		for (i = 0; i < 5; i++) rand()
		verb = one("boot boot apply apply apply iface guests")
		# Most disturbances leave less to do than the runs that were timed.
		part = int(1000 * rand() * rand())
		whom = one("main main group")
		if (verb == "iface")
			disturbance = one("interface interface anew guid")
		else
			disturbance = one("none none one guid policy unbound ipoib half interface anew nothing")
		fault = one("nothing nothing nothing slow lost silent pages probe half dropped refused stale link")
		if (round % 12 == 0)
			fault = "syndrome"
		whole = one("yes no")
		print "whole=" whole " verb=" verb " part=" part " whom=" whom " disturbance=" disturbance " fault=" fault
	}'
}

udevadm settle
phase "as planned"
clean
echo "first:$codes"
host >"$OUT/planned"
left
disturb none
timed boot
disturb none
timed apply
disturb interface
timed iface
systemctl stop guest@0.service guest@1.service
timed guests
echo "takes: boot $takes_boot, apply $takes_apply, iface $takes_iface, guests $takes_guests ms"
# What repeats these rounds, or goes on with them.
again="IBPROV_CAMPAIGN_SEED=$seed"
echo "machine $nth: $again IBPROV_CAMPAIGN_FIRST=$first IBPROV_CAMPAIGN_ROUNDS=$rounds"
n=$first
while [ "$n" -lt $((first + rounds)) ]; do
	eval "$(choose $n)"
	command=$(command_of "$verb" "$whole")
	phase "round $n of machine $nth, $again: ${command#* }, $whom, $disturbance, $fault"
	systemctl stop guest@0.service guest@1.service
	rm -f /run/gate
	disturb $disturbance
	udevadm settle
	fault $fault on
	delay=$((takes_$verb * part / 900))
	killed=${command#* }
	start "/run/log.killed" $command
	sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
	case $whom in
	main) kill -KILL "$ibprov" ;;
	group) echo 1 >"$group/cgroup.kill" ;;
	esac 2>/dev/null
	wait "$ibprov"
	code=$?
	# A guest whose start was asked for finds the VFs with which it was asked for: some
	# faults are taken off by removing them.
	within 20 no_guest_starts || echo "jobs after the kill of round $n: $jobs"
	fault $fault off
	# A modprobe that is killed leaves ib_ipoib loaded and without its netdevs, as no unit
	# does (KillMode=process). Who may unload it is not for ibprov to know, which says so.
	if [ "$whom" = group ] && [ -e /sys/module/ib_ipoib ] && ! within 5 has_netdev; then
		echo "after the kill of round $n ib_ipoib is without its netdevs: unloaded"
		modprobe -r ib_ipoib
	fi
	clean
	host >/run/host
	left >/run/left
	what="round $n: $killed, $whom, after $delay ms: $code, $disturbance, $fault, then$codes"
	if [ "$codes" = " 0 0 0 0" ] && [ ! -s /run/left ] && cmp -s /run/host "$OUT/planned"; then
		echo "$what: right"
	else
		echo "$what: wrong"
		phase "$what: wrong"
		{
			echo "$what"
			cat /run/left
			diff "$OUT/planned" /run/host
			for log in killed boot apply iface guests; do sed "s/^/$log: /" "/run/log.$log"; done
			dmesg | tail -n 30
		} >>"$OUT/wrong"
		# The next round begins with all right.
		bind_anew
		within 20 has_netdev
		disturb none
		clean
	fi
	n=$((n + 1))
done
phase end
dmesg >"$OUT/dmesg"
true
