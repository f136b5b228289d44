# Leaves lines of milliseconds: WHO VFS PROBE_MS MILLISECONDS; and for runs that
# find all as planned: again 16 0 MILLISECONDS.
set -u
. /usr/lib/bed/vf.sh
. /usr/lib/bed/starts.sh
pf=0000:01:00.0
# Only who is measured works at the PF.
ln -s /dev/null /run/systemd/system/ibprov-pf@.service
systemctl daemon-reload
modprobe -a ib_umad ib_uverbs ib_ipoib
udevadm settle

# As the scripts of sites have it, without its sleep.
script() { # PF N
	echo "$2" >"$pci/$1/mlx5_num_vfs"
	i=0
	while [ "$i" -lt "$2" ]; do
		hex=$(printf %02x "$i")
		echo Follow >"$pci/$1/sriov/$i/policy"
		echo "02:00:00:70:00:00:00:$hex" >"$pci/$1/sriov/$i/node"
		echo "02:00:00:70:00:01:00:$hex" >"$pci/$1/sriov/$i/port"
		vf=$(vf "$1" "$i")
		echo "$vf" >/sys/bus/pci/drivers/mlx5_core/unbind
		echo "$vf" >/sys/bus/pci/drivers/mlx5_core/bind
		i=$((i + 1))
	done
}
by_hand() { /usr/lib/bed/by-hand "$1" "$2"; }
by_ibprov() { ibprov apply --config "/run/plan-$2.toml" "$1" >>"$OUT/ibprov.log" 2>&1; }
nanos() { date +%s%N; }
# Hundredths of a second, by the shell alone: while udev is at 16 VFs, to start date
# takes longer than what is measured is late.
hundredths() {
	read -r up _ </proc/uptime
	now=${up%.*}${up#*.}
}
# Neither udev nor what it starts for netdevs is at those of the run before.
has_no_jobs() { [ -z "$(systemctl list-jobs --no-legend)" ]; }
quiet() { udevadm settle && within 60 has_no_jobs || echo "not quiet: $(systemctl list-jobs)"; }
measure() { # WHO N PROBE_MS
	# The driver's memory of GUIDs goes with it.
	echo "$pf" >/sys/bus/pci/drivers/mlx5_core/unbind
	echo "$pf" >/sys/bus/pci/drivers/mlx5_core/bind
	within 10 test -d "$pci/$pf/net"
	quiet
	knobs "$pf+vf/probe_delay_ms=$3"
	hundredths
	begin=$now
	"$1" "$pf" "$2"
	hundredths
	took=$(((now - begin) * 10))
	[ "$(ls -d "$pci/$pf"/virtfn*/net/* | wc -l)" = "$2" ] || echo "$1 $2 $3: not all netdevs"
	echo "$1 $2 $3 $took" >>"$OUT/times"
	phase "$1 $2 $3 $took"
}
for n in 1 8 16; do
	printf '[[pf]]\npci = "%s"\nbind = "parallel"\nvfs = %s\nguid.template = "02:00:00:70:00:{kind:8}:{vf:16}"\n' "$pf" "$n" >"/run/plan-$n.toml"
done
# One round to fill the caches, which is not counted.
measure by_ibprov 16 0
measure by_hand 16 0
: >"$OUT/times"
several() { # PROBE_MS: the script takes long and differs little, the others by half
	for round in 1 2 3 4 5 6 7 8 9; do
		[ "$round" -gt 3 ] || measure script 16 "$1"
		measure by_hand 16 "$1"
		measure by_ibprov 16 "$1"
	done
}
several 100
quiet
for round in 1 2 3 4 5 6 7; do
	begin=$(nanos)
	by_ibprov "$pf" 16
	echo "again 16 0 $((($(nanos) - begin) / 1000000))" >>"$OUT/times"
done
started again by_ibprov "$pf" 16
costs
several 300
for few in "16 0" "1 100" "8 100"; do
	measure script $few
	measure by_hand $few
	measure by_ibprov $few
done
phase end
