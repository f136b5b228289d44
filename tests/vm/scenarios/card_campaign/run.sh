set -u
. /usr/lib/bed/vf.sh
pf=0001:01:00.0
driver=/sys/bus/pci/drivers/mlx5_core
held() { grep -v ' 0$' "/sys/kernel/debug/ibcard/$1/held" 2>/dev/null; }
# Memory that the kernel does not give back by itself.
slab() { awk '/^SUnreclaim:/ { print $2 }' /proc/meminfo; }
rebind() {
	echo "$1" >$driver/unbind && echo "$1" >$driver/bind || echo "failed: $1"
}
round() {
	for vf in 1 2 3 4 5 6 7; do rebind "0001:01:00.$vf" & done
	rebind 0001:01:01.0 &
	wait
}
all() { [ "$(ls -d "$pci"/$pf/virtfn*/infiniband/* 2>/dev/null | wc -l)" = 8 ]; }

# As many times eight binds.
rounds=125
phase on
udevadm settle
echo 8 >"$pci/$pf/sriov_numvfs"
within 60 all || echo "not all VFs came"
# What is kept after the first rounds is there for good.
for n in 1 2 3 4 5; do round; done
udevadm settle
before=$(slab)
start=$(uptime_ms)
for n in $(seq $rounds); do
	round
	[ $((n % 20)) != 0 ] || phase "$n rounds"
done
echo "rebinds: $((rounds * 8)) in $((($(uptime_ms) - start) / 1000)) s"
udevadm settle
within 60 all || echo "not all VFs came again"
echo "slab: $(($(slab) - before)) kB"

phase "VFs off and on"
for n in 1 2 3; do
	echo 0 >"$pci/$pf/sriov_numvfs"
	echo 8 >"$pci/$pf/sriov_numvfs"
done
within 60 all || echo "VFs did not come back"
echo 0 >"$pci/$pf/sriov_numvfs"

phase "reload by devlink"
devlink dev reload pci/$pf || echo "devlink reload: $?"
udevadm settle

phase "drivers out and in"
modprobe -r ib_ipoib mlx5_ib mlx5_core || echo "modprobe -r: $?"
held $pf >"$OUT/held"
modprobe -a mlx5_core mlx5_ib ib_ipoib
within 60 test -d "$pci/$pf/net"
dmesg >"$OUT/dmesg"
cat /sys/kernel/debug/ibcard/counters >"$OUT/counters"
true
