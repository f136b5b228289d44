# Each round starts ibprov.service, bare.service, and bare.service in ibprov's
# sandbox (boxed.service) from the same state, and leaves a line of times for
# each, microseconds of CLOCK_MONOTONIC:
#     UNIT unit-started netdev-named unit-ended last-program-started last-program-ended
# (ibprov has one program, the others have modprobe and udevadm). The adapter's driver
# stays loaded; mlx5_ib holds ib_uverbs, the simulated HCA's does not.
set -eu
. /usr/lib/bed/starts.sh
unload() {
	systemctl stop ibprov.service bare.service boxed.service
	modprobe -r ib_ipoib
	modprobe -r ib_umad
	[ -n "$(ls /sys/module/ib_uverbs/holders)" ] || modprobe -r ib_uverbs
	udevadm settle
}
property() { systemctl show -p "$2" --value "$1"; }
measure() { # UNIT
	unload
	systemctl start "$1.service"
	named=$(udevadm info --query=property --property=USEC_INITIALIZED --value /sys/class/net/ib0)
	echo "$1 $(property "$1" InactiveExitTimestampMonotonic) $named $(property "$1" ActiveEnterTimestampMonotonic) $(property "$1" ExecMainStartTimestampMonotonic) $(property "$1" ExecMainExitTimestampMonotonic)"
}

# What systemd does before it starts the program, taken from the unit as it is.
systemctl cat bare.service | grep -v '^#' >/run/systemd/system/boxed.service
sed -n '/^\[Service\]/,/^\[Install\]/p' /usr/lib/systemd/system/ibprov.service |
	grep -E '^(RuntimeDirectory|CapabilityBoundingSet|NoNewPrivileges|LockPersonality|MemoryDeny|Private|Protect|Restrict|SystemCall|UMask)' \
		>>/run/systemd/system/boxed.service
systemctl daemon-reload

udevadm settle
modprobe -a ib_umad ib_uverbs ib_ipoib
# One round to fill the caches, which is not counted.
measure ibprov >/dev/null
measure bare >/dev/null
measure boxed >/dev/null
for round in 1 2 3 4 5 6 7; do
	# Who goes first changes.
	case $((round % 3)) in
	0) order="ibprov bare boxed" ;;
	1) order="bare boxed ibprov" ;;
	2) order="boxed ibprov bare" ;;
	esac
	for unit in $order; do
		measure "$unit" >>"$OUT/rounds"
		[ "$unit" != ibprov ] || cp /run/ibprov/boot.json "$OUT/ibprov-$round.json"
	done
done

for unit in ibprov bare; do
	unload
	started "$unit" systemctl start "$unit.service"
done
costs

# A host without an HCA.
function=$(readlink -f /sys/class/net/ib0/device)
unload
echo 1 >"$function/remove"
udevadm settle
for round in 1 2 3 4 5 6 7; do
	systemctl stop ibprov.service
	systemctl start ibprov.service
	cp /run/ibprov/boot.json "$OUT/none-$round.json"
done
