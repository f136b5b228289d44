# Faults of a boot, one after the other on one machine, to be sourced. Of each fault
# NAME there is make_NAME and, where make_NAME did more than a knob, back_NAME;
# up_NAME replaces `up`. Between two faults the drivers are unloaded and the log is
# emptied, so that `ibprov check` sees one fault alone.
. /usr/lib/bed/vf.sh
pf=0001:01:00.0
has() { command -v "$1" >/dev/null; }
at_rest() { [ -z "$(systemctl list-units --no-legend --plain --state=activating,deactivating,reloading 'ibprov*')" ]; }
unload() {
	for unloaded in "$pci"/0001:*; do
		[ ! -e "$unloaded/virtfn0" ] || echo 0 >"$unloaded/sriov_numvfs"
	done
	for module in ib_ipoib ib_umad ib_uverbs mlx5_ib mlx5_core; do
		[ ! -e "/sys/module/$module" ] || modprobe -r "$module"
	done
	[ ! -e /sys/module/mlx5_core ]
}
down() { # as a host is before its first boot
	systemctl stop networking.service ibprov.service 2>/dev/null
	within 60 at_rest || echo "units are not at rest"
	within 90 unload 2>/dev/null || echo "mlx5_core cannot be unloaded: $(cat /sys/module/mlx5_core/refcnt)"
	rm -rf /run/ibprov/pf /run/ibprov/boot.json /run/ibprov/ports /run/ibprov/vpd* /run/ibprov/guests.json
	udevadm settle
	systemctl reset-failed
}
forget() { # what the log has so far
	journalctl --quiet --sync --rotate
	journalctl --quiet --vacuum-time=1us
	dmesg --clear
}
up() { systemctl start ibprov.service networking.service 2>/dev/null; }
# A port that is active has yet to join its groups: only then its interface has carrier.
active() {
	within 30 grep -qs ACTIVE "$pci/$pf"/infiniband/*/ports/1/state
	within 30 joined
}
joined() { ! ip -o link show | grep -q ': ib[^:]*: .*NO-CARRIER'; }
# fault NAME: makes it, brings the node up with it, asks, and takes it back.
fault() {
	phase "$1"
	down
	has "make_$1" && "make_$1"
	forget
	if has "up_$1"; then "up_$1"; else up; fi
	udevadm settle
	within 60 at_rest || echo "$1: units are not at rest"
	has "wait_$1" && "wait_$1"
	ibprov check --format json >"$OUT/$1.json" 2>"$OUT/$1.err"
	echo "$1: $?"
	journalctl --quiet -b -o short-monotonic >"$OUT/$1.log"
	has "back_$1" && "back_$1"
	true
}
