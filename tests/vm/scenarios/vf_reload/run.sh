set -u
. /usr/lib/bed/vf.sh
pf=0001:01:00.0
report=/run/ibprov/pf/$pf.json
is_right() { grep -q '"verdict": "right"' "$report" 2>/dev/null; }
udevadm settle
facts "$pf" >"$OUT/fresh"

phase "1. mlx5_ib goes and comes"
# modprobe -r would take mlx5_core as well, which nothing uses then.
rmmod ib_ipoib mlx5_ib
modprobe -a mlx5_ib ib_ipoib
udevadm settle
facts "$pf" >"$OUT/rdma"
counters >"$OUT/counters.before"
apply rdma
counters >"$OUT/counters.after"

phase "2. all drivers go and come"
udevadm settle
rm -f "$report"
modprobe -r ib_ipoib mlx5_ib mlx5_core
modprobe -a mlx5_core mlx5_ib ib_ipoib
within 60 is_right && echo "somebody cared"
udevadm settle
facts "$pf" >"$OUT/all"

phase "3. ib_ipoib fails for VF 0, as where its modprobe gets a signal"
systemctl mask --runtime --quiet "ibprov-pf@.service"
knobs "$(vf $pf 0)/fail.ALLOC_PD=0:4"
modprobe -r ib_ipoib
modprobe ib_ipoib
knobs "$(vf $pf 0)/fail.ALLOC_PD=9999"
udevadm settle
facts "$pf" >"$OUT/failed"
ibprov plan >"$OUT/failed.plan" 2>&1
echo "plan: $?"
ibprov status >"$OUT/failed.status" 2>&1
echo "status: $?"
counters >"$OUT/counters.failed"
apply ipoib
counters >"$OUT/counters.mended"
udevadm settle
facts "$pf" >"$OUT/mended"
ibprov status >"$OUT/mended.status" 2>&1
echo "status at the end: $?"

dmesg >"$OUT/dmesg"
phase end
