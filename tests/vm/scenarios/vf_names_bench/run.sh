# Leaves lines of milliseconds: WHO PROBE_MS MILLISECONDS.
set -u
. /usr/lib/bed/vf.sh
. /usr/lib/bed/starts.sh
vfs=16
pf=0001:01:00.0
delay=slow.INIT_HCA
[ -e $pci/$pf ] || pf=0000:01:00.0 delay=probe_delay_ms
# Only who is measured works at the PF.
for unit in ibprov-pf@ ibprov-iface@; do ln -s /dev/null "/run/systemd/system/$unit.service"; done
systemctl daemon-reload
modprobe -a ib_umad ib_uverbs ib_ipoib
udevadm settle
cat >/run/plan.toml <<-END
	[[pf]]
	pci = "$pf"
	vfs = $vfs
	vf-name = "{netdev}v{vf}"
	vf-rdma-name = "{rdma}v{vf}"
	guid.template = "02:00:00:70:00:{kind:8}:{vf:16}"
END
by_hand() { /usr/lib/bed/by-hand $pf $vfs ib0v mlx5_0v; }
by_ibprov() { ibprov apply --config /run/plan.toml $pf >>"$OUT/ibprov.log" 2>&1; }
hundredths() {
	read -r up _ </proc/uptime
	now=${up%.*}${up#*.}
}
has_no_jobs() { [ -z "$(systemctl list-jobs --no-legend)" ]; }
begin_anew() { # PROBE_MS
	# The driver's memory of GUIDs goes with it.
	echo 0 >$pci/$pf/sriov_numvfs
	echo $pf >/sys/bus/pci/drivers/mlx5_core/unbind
	rm -f /run/udev/rules.d/61-*
	udevadm control --reload
	echo $pf >/sys/bus/pci/drivers/mlx5_core/bind
	within 20 test -d $pci/$pf/net
	udevadm settle && within 60 has_no_jobs || echo "not quiet: $(systemctl list-jobs)"
	knobs "$pf+vf/$delay=$1"
}
measure() { # WHO PROBE_MS
	begin_anew "$2"
	hundredths
	begin=$now
	"$1" || echo "$1 $2: $?"
	hundredths
	took=$(((now - begin) * 10))
	for vf in $(seq 0 $((vfs - 1))); do
		for name in net/ib0v infiniband/mlx5_0v; do
			found=$(echo $pci/$pf/virtfn$vf/${name%/*}/*)
			[ "$found" = "$pci/$pf/virtfn$vf/$name$vf" ] || echo "$1 $2: $found"
		done
	done
	echo "$1 $2 $took" >>"$OUT/times"
	phase "$1 $2 $took"
}
# One round to fill the caches, which is not counted.
measure by_ibprov 0
measure by_hand 0
: >"$OUT/times"
for probe in 0 100 300; do
	for round in 1 2 3 4 5; do
		measure by_hand $probe
		measure by_ibprov $probe
	done
done
for who in by_hand by_ibprov; do
	begin_anew 0
	started $who $who
done
costs
