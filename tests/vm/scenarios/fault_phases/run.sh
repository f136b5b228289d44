# Leaves a line for each pair: FAULT PHASE EXIT MILLISECONDS, and its report in
# FAULT.PHASE.json. The faults stand on the kernel's command line, bed.faults=WORD,...
set -u
. /usr/lib/bed/vf.sh
pf=0001:01:00.0
faults=
for word in $(cat /proc/cmdline); do
	case $word in bed.faults=*) faults=$(echo "${word#*=}" | tr , ' ') ;; esac
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
	slow) knobs "*/slow=150" ;;
	pages) knobs "$pf/fail.MANAGE_PAGES=0:9" ;;
	link) knobs "$pf/link=down" ;;
	init) knobs "$pf/link=init" ;;
	sm) knobs "$pf/sm=0" ;;
	eth) knobs "$pf/link_type=eth" ;;
	stale) knobs "$pf+vf/latch=stale" ;;
	guid-drop | policy-drop) knobs "$pf/${1%-*}_write=drop" ;;
	guid-refuse) knobs "$pf/guid_write=4" ;;
	policy-refuse) knobs "$pf/policy_write=3" ;;
	vpd) knobs "$pf/vpd=broken" ;;
	vpd-slow) knobs "$pf/vpd_ms=1000" ;;
	fw-wait) knobs "$pf/fw_wait_ms=100000" ;;
	fail.* | vf-fail.*) knobs "$(who "$1")/fail.${1#*fail.}=0:1" ;;
	drop.* | vf-drop.*) knobs "$(who "$1")/drop.${1#*drop.}=1" ;;
	slow.*) knobs "$pf/$1=8000" ;;
	esac; }
who() { case $1 in vf-*) echo "$pf+vf" ;; *) echo $pf ;; esac; }
off() { case $1 in
	silent | gone | syndrome) knobs "$pf/$1=0" ;;
	slow) knobs "*/slow=0" ;;
	pages) knobs "$pf/fail.MANAGE_PAGES=9999" ;;
	link | init) knobs "$pf/link=active" ;;
	sm) knobs "$pf/sm=1" ;;
	eth) knobs "$pf/link_type=ib" ;;
	stale) knobs "$pf+vf/latch=fresh" ;;
	guid-* | policy-*) knobs "$pf/${1%-*}_write=ok" ;;
	vpd) knobs "$pf/vpd=V3:SMDL=NIC" ;;
	vpd-slow) knobs "$pf/vpd_ms=0" ;;
	fw-wait) knobs "$pf/fw_wait_ms=0" ;;
	fail.* | vf-fail.*) knobs "$(who "$1")/fail.${1#*fail.}=9999" ;;
	drop.* | vf-drop.*) knobs "$(who "$1")/drop.${1#*drop.}=late" ;;
	slow.*) knobs "$pf/$1=0" ;;
	esac; }
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
	within 90 unload 2>/dev/null || echo "mlx5_core cannot be unloaded: $(cat /sys/module/mlx5_core/refcnt)"
	rm -rf /run/ibprov/pf /run/ibprov/boot.json /run/ibprov/ports /run/ibprov/vpd* /run/udev/rules.d/61-ibprov*
	udevadm control --reload
	udevadm settle
}
pair() { # FAULT PHASE
	fresh
	phase "$1 $2"
	echo "mark $1 $2" >/dev/kmsg
	[ "$2" != before ] || on "$1"
	start=$(uptime_ms)
	timeout -k 5 90 systemctl start ibprov.service 2>/dev/null &
	boot=$!
	if [ "$2" != before ]; then
		until "$2" || ended; do sleep 0.05; done
		ended && echo "$1 $2: ended first" >>"$OUT/missed"
		on "$1"
	fi
	until ended; do
		sleep 0.1
		[ $(($(uptime_ms) - start)) -lt 40000 ] || { stuck "$1 $2"; break; }
	done
	took=$(($(uptime_ms) - start))
	echo "$1 $2 $(systemctl show -p ExecMainStatus --value ibprov.service) $took" >>"$OUT/pairs"
	cp /run/ibprov/boot.json "$OUT/$1.$2.json"
	phase "$1 $2 status"
	ibprov status >"$OUT/$1.$2.status" 2>&1
	echo "$?" >>"$OUT/$1.$2.status"
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
for fault in $faults; do
	for when in before probe rdma netdev vfs bound; do
		# Without a fault there is one boot.
		[ "$fault-$when" = none-before ] || [ "$fault" != none ] || continue
		pair "$fault" "$when"
	done
done
fresh
systemctl start ibprov.service
echo "last: $? $(ibprov status >"$OUT/last.status" 2>&1; echo $?)"
dmesg >"$OUT/dmesg"
true
