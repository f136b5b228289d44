set -u
. /usr/lib/bed/vf.sh
pf=0001:01:00.0
report=/run/ibprov/pf/$pf.json
is_right() { grep -q '"verdict": "done"' "$report" 2>/dev/null; }
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

phase "4. mlx5_ib is at work on VF 0 when other GUIDs are wanted"
sed -i 's/02:00:00:70:/02:00:00:71:/' /etc/ibprov/ibprov.toml
function=$(vf $pf 0)
echo "$function" >/sys/bus/pci/drivers/mlx5_core/unbind
knobs "$function/slow.ALLOC_PD=10000"
echo "$function" >/sys/bus/pci/drivers/mlx5_core/bind &
binds=$!
# Before Linux 5.11 there is no device for the RDMA half.
is_at_work() {
	[ -e "$pci/$function/driver" ] || return 1
	set -- "$pci/$function"/mlx5_core.rdma.*
	[ ! -e "$1" ] && [ "$(uname -r | cut -d. -f1)" = 5 ] || [ -e "$1/driver" ]
}
within 20 is_at_work || echo "mlx5_ib does not come to VF 0"
apply probing &
applies=$!
# Longer than any look takes.
sleep 5
kill -0 "$applies" && echo "the RDMA device of VF 0 is waited for"
knobs "$function/slow.ALLOC_PD=0"
ls -d "$pci/$function/infiniband" 2>/dev/null
wait "$binds" "$applies"
udevadm settle
facts "$pf" >"$OUT/probing"

phase "5. the clients of the RDMA device of VF 0 are still to come, ib_ipoib the last"
echo "$function" >/sys/bus/pci/drivers/mlx5_core/unbind
knobs "$function/slow.CREATE_QP=3000"
echo "$function" >/sys/bus/pci/drivers/mlx5_core/bind &
binds=$!
has_rdma() { [ -e "$pci/$function/infiniband" ]; }
within 30 has_rdma || echo "no RDMA device comes"
apply registering
knobs "$function/slow.CREATE_QP=0"
wait "$binds"

phase "6. udev has other things to do when named VFs come"
sed -i 's/^vfs = 2$/vfs = 2\nvf-name = "rail0v{vf}"/' /etc/ibprov/ibprov.toml
echo 0 >"$pci/$pf/sriov_numvfs"
udevadm settle
udevadm control --stop-exec-queue
ibprov apply --format json >"$OUT/busy.json" 2>"$OUT/busy.log" &
applies=$!
have_netdevs() { ls "$pci/$pf"/virtfn0/net/* "$pci/$pf"/virtfn1/net/* >/dev/null 2>&1; }
within 30 have_netdevs
# Longer than udev gets for a name when it has nothing else to do.
sleep 5
kill -0 "$applies" && echo "still waited for"
udevadm control --start-exec-queue
wait "$applies"
echo "busy: $?"
echo "names: $(ls "$pci/$pf"/virtfn0/net "$pci/$pf"/virtfn1/net | grep rail | tr '\n' ' ')"

phase "7. the [[pf]] is removed from the configuration, and its VFs come once more"
# rules: how many files of rules there are.
rules() { ls /run/udev/rules.d | grep -c ibprov-vfs; }
echo "rules: $(rules)"
sed -i '/^\[\[pf\]\]/,/^$/d' /etc/ibprov/ibprov.toml
ibprov apply
echo "rules left: $(rules)"
rmmod ib_ipoib
modprobe ib_ipoib
udevadm settle
echo "called rail: $(ls "$pci/$pf"/virtfn0/net "$pci/$pf"/virtfn1/net | grep -c rail)"

dmesg >"$OUT/dmesg"
phase end
