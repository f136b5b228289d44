set -eu
/usr/lib/bed/tap-ib ib0
ibprov iface ib0 --dry-run >"$OUT/decision" || :
for round in 1 2 3 4 5 6 7 8 9; do
	begin=$(date +%s%N)
	ibprov iface ib0 --dry-run >/dev/null || :
	echo $((($(date +%s%N) - begin) / 1000))
done >"$OUT/usec"
RUST_BACKTRACE=1 ibprov iface ib7 2>"$OUT/backtrace" || echo "nosuch: $?"
