set -u
. /usr/lib/bed/vf.sh
pf=0001:01:00.0
report=/run/ibprov/pf/$pf.json
is_right() { grep -q '"verdict": "done"' "$report" 2>/dev/null; }
as_planned() { facts "$pf" >/run/facts && cmp -s /run/facts "$OUT/planned"; }
wrong() {
	echo "wrong after $n ($1): $2"
	cat /run/facts
}

udevadm settle
facts "$pf" >"$OUT/planned"
# From the 26th on beside other work.
load() { while [ ! -e /run/end ]; do ls -R /etc /usr/lib/systemd /sys/class; done >/dev/null 2>&1; }
start=$(uptime_ms)
slowest=0
for n in $(seq 50); do
	[ "$n" != 26 ] || load &
	begin=$(uptime_ms)
	if [ $((n % 2)) = 0 ]; then
		what="mlx5_ib"
		modprobe -r ib_ipoib mlx5_ib || wrong "$what" "modprobe -r"
		modprobe -a mlx5_ib ib_ipoib || wrong "$what" "modprobe"
	else
		what="mlx5_core"
		rm -f "$report"
		modprobe -r ib_ipoib mlx5_ib mlx5_core || wrong "$what" "modprobe -r"
		modprobe -a mlx5_core mlx5_ib ib_ipoib || wrong "$what" "modprobe"
		within 60 is_right || wrong "$what" "nobody cared"
	fi
	within 30 as_planned || wrong "$what" "not as planned"
	took=$(($(uptime_ms) - begin))
	[ "$took" -le "$slowest" ] || slowest=$took
	[ $((n % 10)) != 0 ] || phase "$n reloads"
done
: >/run/end
echo "reloads: 50 in $((($(uptime_ms) - start) / 1000)) s, slowest $slowest ms"
dmesg >"$OUT/dmesg"
true
