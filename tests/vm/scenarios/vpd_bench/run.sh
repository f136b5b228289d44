# Leaves a line for each boot of ibprov: WHO and microseconds from its begin to its end;
# "asked" reads the product data, "kept" finds them where the boot before has kept them.
set -eu
unload() {
	systemctl stop ibprov.service
	modprobe -r ib_ipoib
	modprobe -r ib_umad
	udevadm settle
}
# Those of the boot, not of its steps.
number() { sed -n "s/^  \"$1\": \([0-9]*\),*$/\1/p" /run/ibprov/boot.json; }
measure() { # WHO
	unload
	[ "$1" = kept ] || rm -r /run/ibprov/vpd
	systemctl start ibprov.service
	echo "$1 $(($(number finished_usec) - $(number started_usec)))"
	ls /run/ibprov/vpd/*.json >/dev/null
}
udevadm settle
systemctl start ibprov.service
measure asked >/dev/null
measure kept >/dev/null
for round in 1 2 3 4 5 6 7 8 9 10 11; do
	case $((round % 2)) in
	0) order="asked kept" ;;
	1) order="kept asked" ;;
	esac
	for who in $order; do measure $who >>"$OUT/rounds"; done
done
