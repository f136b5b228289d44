set -u
. /usr/lib/bed/vf.sh
. /usr/lib/bed/names.sh
udevadm settle
for round in $(seq 20); do
	for n in 1 2; do
		free "0001:0$n:00.0"
		ibprov apply "0001:0$n:00.0" >"$OUT/apply.log" 2>&1 || echo "round $round, card $n: $?"
		udevadm settle
		names "0001:0$n:00.0" | sed "s/^/$n /" >>"$OUT/rounds"
	done
	phase "$round rounds"
done
dmesg >"$OUT/dmesg"
true
