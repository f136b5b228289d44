# Leaves a line for each pair: FAULT PHASE EXIT MILLISECONDS SINCE, where SINCE is how long
# the fault was on when boot ended, in milliseconds; its report in FAULT.PHASE.json; and
# while the fault is still on: in FAULT.PHASE.host what the host is like when boot has ended,
# in FAULT.PHASE.status what `ibprov status` prints, with its exit code as the last line, in
# FAULT.PHASE.after what the host is like then. Pairs whose boot ended before the phase came
# stand in missed. The faults stand on the kernel's command line, bed.faults=WORD,...; with
# bed.phase=WORD there is this phase alone, after which the machine need not work any more.
set -u
. /usr/lib/bed/vf.sh
# A card in software, or the simulated HCA, whose knobs are the driver module's.
pf=0001:01:00.0
[ -d $pci/$pf ] || pf=0000:01:00.0
sim=${set%/*}
faults=
phases="before probe rdma netdev vfs bound"
only=
for word in $(cat /proc/cmdline); do
	case $word in
	bed.faults=*) faults=$(echo "${word#*=}" | tr , ' ') ;;
	bed.phase=*) only=${word#*=} phases=${word#*=} ;;
	esac
done
# What is waited for before the fault comes. Without an event: the kernel has none for
# a probe that has begun.
before() { true; }
probe() { [ -e "$pci/$pf/driver" ]; }
rdma() { ls "$pci/$pf"/infiniband/* >/dev/null 2>&1; }
netdev() { ls "$pci/$pf"/net/* >/dev/null 2>&1; }
vfs() { [ -e "$pci/$pf/virtfn0" ]; }
bound() { ls "$pci/$pf"/virtfn1/net/* >/dev/null 2>&1; }
# on FAULT, off FAULT: FAULT is a knob's rule, WHO/KNOB=VALUE, or two; it ends with
# what the knob has by default.
on() { case $1 in
	silent | gone | syndrome) knobs "$pf/$1=1" ;;
	vf-silent | vf-gone | vf-syndrome) knobs "$pf+vf/${1#vf-}=1" ;;
	syndrome-norfr) knobs "$pf/rfr=0" "$pf/syndrome=1" ;;
	syndrome-reset) knobs "$pf/reset_ms=8000" "$pf/syndrome=1" ;;
	slow) knobs "*/slow=150" ;;
	# Two VFs, one after the other, need half of the time after which their driver gives up.
	serial) knobs "*/serial_init_ms=500" ;;
	pages) knobs "$pf/fail.MANAGE_PAGES=0:9" ;;
	link) knobs "$pf/link=down" ;;
	init) knobs "$pf/link=init" ;;
	sm) knobs "$pf/sm=0" ;;
	link-delay | active-delay | sm-delay) knobs "$pf/${1%-*}_delay_ms=4000" ;;
	eth) knobs "$pf/link_type=eth" ;;
	stale) knobs "$pf+vf/latch=stale" ;;
	guid-drop | policy-drop) knobs "$pf/${1%-*}_write=drop" ;;
	guid-refuse) knobs "$pf/guid_write=4" ;;
	policy-refuse) knobs "$pf/policy_write=3" ;;
	vpd) knobs "$pf/vpd=broken" ;;
	vpd-slow) knobs "$pf/vpd_ms=1000" ;;
	# Below the 125 ms from which on the kernel gives up.
	vpd-late) knobs "$pf/vpd_ms=60" ;;
	# It counts from power-on, which the unloading of a driver is not: that was long ago.
	fw-wait | vf-fw-wait) knobs "$(who "$1")/fw_wait_ms=1000000000" ;;
	fail.* | vf-fail.*) knobs "$(who "$1")/fail.${1#*fail.}=0:1" ;;
	drop.* | vf-drop.*) knobs "$(who "$1")/drop.${1#*drop.}=1" ;;
	slow.*) knobs "$pf/$1=8000" ;;
	# Of the simulated HCA.
	held-lock) hold "$sim/$pf/device_lock" ;;
	held-rtnl) hold "$sim/rtnl" ;;
	port-query) early "$pf/port_query_ms=ever" ;;
	vf-query) early "$pf/vf_query_ms=ever" ;;
	sriov-errno) early "$pf/sriov_errno=ENOSPC" ;;
	probe-errno) early "$pf/probe_errno=EIO" ;;
	vf-probe-errno) early "$pf+vf/probe_errno=EIO" ;;
	vf-probe-delay) early "$pf+vf/probe_delay_ms=3000" ;;
	esac; }
# early RULE: a rule of a driver that may not be loaded yet.
early() {
	if [ -e "$set" ]; then knobs "$1"; else
		mkdir -p /run/modprobe.d
		echo "options mlx5_core set=$1" >/run/modprobe.d/fault.conf
	fi
}
# hold FILE: once the driver that has it is loaded. A probe may have the lock meanwhile.
hold() {
	{ until [ -e "$1" ]; do sleep 0.05; done; echo 1 >"$1"; } &
	holder=$!
}
held() { ! kill -0 "$holder" 2>/dev/null; }
release() {
	[ -e "$1" ] || kill "$holder"
	within 30 held || echo "$1 is not to be had"
	[ ! -e "$1" ] || echo 0 >"$1"
}
late() { # RULE: what it has by default
	rm -f /run/modprobe.d/fault.conf
	[ ! -e "$set" ] || knobs "$1"
}
who() { case $1 in vf-*) echo "$pf+vf" ;; *) echo $pf ;; esac; }
off() { case $1 in
	silent | gone | syndrome) knobs "$pf/$1=0" ;;
	vf-silent | vf-gone | vf-syndrome) knobs "$pf+vf/${1#vf-}=0" ;;
	syndrome-norfr) knobs "$pf/syndrome=0" "$pf/rfr=1" ;;
	syndrome-reset) knobs "$pf/syndrome=0" "$pf/reset_ms=500" ;;
	slow) knobs "*/slow=0" ;;
	serial) knobs "*/serial_init_ms=0" ;;
	pages) knobs "$pf/fail.MANAGE_PAGES=9999" ;;
	link | init) knobs "$pf/link=active" ;;
	sm) knobs "$pf/sm=1" ;;
	link-delay | active-delay | sm-delay) knobs "$pf/${1%-*}_delay_ms=0" ;;
	eth) knobs "$pf/link_type=ib" ;;
	stale) knobs "$pf+vf/latch=fresh" ;;
	guid-* | policy-*) knobs "$pf/${1%-*}_write=ok" ;;
	vpd) knobs "$pf/vpd=V3:SMDL=NIC" ;;
	vpd-slow | vpd-late) knobs "$pf/vpd_ms=0" ;;
	fw-wait | vf-fw-wait) knobs "$(who "$1")/fw_wait_ms=0" ;;
	fail.* | vf-fail.*) knobs "$(who "$1")/fail.${1#*fail.}=9999" ;;
	drop.* | vf-drop.*) knobs "$(who "$1")/drop.${1#*drop.}=late" ;;
	slow.*) knobs "$pf/$1=0" ;;
	held-lock) release "$sim/$pf/device_lock" ;;
	held-rtnl) release "$sim/rtnl" ;;
	port-query) late "$pf/port_query_ms=0" ;;
	vf-query) late "$pf/vf_query_ms=0" ;;
	sriov-errno) late "$pf/sriov_errno=0" ;;
	probe-errno) late "$pf/probe_errno=0" ;;
	vf-probe-errno) late "$pf+vf/probe_errno=0" ;;
	vf-probe-delay) late "$pf+vf/probe_delay_ms=0" ;;
	esac; }
# What the host is like, by the kernel's own words.
host() {
	facts $pf
	for index in 0 1; do
		echo "VF $index: $(cd "$pci/$pf/virtfn$index" 2>/dev/null && echo infiniband/* net/*)"
	done
	first layer "$pci/$pf"/infiniband/*/ports/1/link_layer
	echo "PF: $(cd "$pci/$pf" && echo infiniband/* net/*) $layer"
}
# looked_at FILE: what the host is like goes there. Its reader waits for the lock of a device
# whose driver hangs, as mlx5_core does for good where a VF is unbound after a lost command.
looked_at() {
	host >"$1" &
	looker=$!
	within 15 looker_ended || echo "the reader hangs" >>"$1"
}
looker_ended() { ! kill -0 "$looker" 2>/dev/null; }
# The link states of the VFs. The driver asks the firmware for them, and waits for it, as ip(8)
# does for RTNL: not where the exit code of boot claims nothing of them.
link_states() {
	[ "$1" = 0 ] || return 0
	ip link show ib0 >/run/links 2>/dev/null &
	looker=$!
	within 20 looker_ended || return 0
	sed -n 's/^ *\(vf [0-9]*\).*, \(link-state [a-z]*\).*/\1 \2/p' /run/links
}
ended() { ! kill -0 "$boot" 2>/dev/null; }
# units: ibprov's are at rest
at_rest() { [ -z "$(systemctl list-units --no-legend --plain --state=activating,deactivating,reloading 'ibprov*')" ]; }
unloaded() { [ ! -e /sys/module/mlx5_core ]; }
unload() {
	[ ! -e "$pci/$pf/virtfn0" ] || echo 0 >"$pci/$pf/sriov_numvfs"
	modprobe -r ib_ipoib; modprobe -r ib_umad; modprobe -r ib_uverbs; modprobe -r mlx5_ib; modprobe -r mlx5_core
	unloaded
}
fresh() { # as a host is before the first boot
	systemctl stop ibprov.service
	within 60 at_rest || echo "units are not at rest: $(systemctl list-units --no-legend --plain --state=activating,deactivating 'ibprov*')"
	systemctl reset-failed
	# At the beginning udev may be about to load a driver.
	udevadm settle
	# One that waits for firmware at all does so for 120 s.
	within 150 unload 2>/dev/null || echo "mlx5_core cannot be unloaded: $(cat /sys/module/mlx5_core/refcnt)"
	# Not the records of what is to be restored, which a boot that came to its deadline may leave.
	rm -rf /run/ibprov/pf/*.json /run/ibprov/boot.json /run/ibprov/ports /run/ibprov/vpd* /run/udev/rules.d/61-ibprov*
	udevadm control --reload
	udevadm settle
}
pair() { # FAULT PHASE
	fresh
	phase "$1 $2"
	echo "mark $1 $2" >/dev/kmsg
	[ "$2" != before ] || on "$1"
	start=$(uptime_ms)
	came=$start
	timeout -k 5 90 systemctl start ibprov.service 2>/dev/null &
	boot=$!
	if [ "$2" != before ]; then
		until "$2" || ended; do sleep 0.05; done
		ended && echo "$1 $2: ended first" >>"$OUT/missed"
		on "$1"
		came=$(uptime_ms)
	fi
	until ended; do
		sleep 0.1
		[ $(($(uptime_ms) - start)) -lt 40000 ] || { stuck "$1 $2"; break; }
	done
	over=$(uptime_ms)
	# Before all else, as a fault may come to take more and more from the host.
	looked_at "$OUT/$1.$2.host"
	code=$(systemctl show -p ExecMainStatus --value ibprov.service)
	link_states "$code" >>"$OUT/$1.$2.host"
	echo "$1 $2 $code $((over - start)) $((over - came))" >>"$OUT/pairs"
	cp /run/ibprov/boot.json "$OUT/$1.$2.json"
	phase "$1 $2 status"
	ibprov status >"$OUT/$1.$2.status" 2>&1
	echo "$?" >>"$OUT/$1.$2.status"
	looked_at "$OUT/$1.$2.after"
	phase "$1 $2 off"
	off "$1"
	wait "$boot"
	phase "$1 $2 over"
}
stuck() { # where everybody is
	echo "stuck: $1"
	for dir in /proc/[0-9]*; do
		read -r comm <"$dir/comm"
		case $comm in *ibprov* | exe | modprobe | *udev-worker*) echo "$1: ${dir#/proc/} $comm $(tr '\0' ' ' <"$dir/cmdline")"; cat "$dir/stack" ;; esac
	done >>"$OUT/stuck" 2>/dev/null
}
: >"$OUT/missed"
trap 'dmesg >"$OUT/dmesg"' EXIT
for fault in $faults; do
	for when in $phases; do
		# Without a fault there is one boot.
		[ "$fault-$when" = none-before ] || [ "$fault" != none ] || continue
		pair "$fault" "$when"
	done
done
[ -z "$only" ] || exit 0
fresh
systemctl start ibprov.service
echo "last: $? $(ibprov status >"$OUT/last.status" 2>&1; echo $?)"
true
