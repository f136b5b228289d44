set -u
. /usr/lib/bed/vf.sh
ofed=0000:01:00.0
mainline=0000:02:00.0
late=0000:03:00.0
both() { facts "$ofed" >"$OUT/$1.ofed"; facts "$mainline" >"$OUT/$1.mainline"; }
template() { # FIRST-BYTES: another configuration, of the first two PFs
	sed "s/02:00:00:70/$1/; /0000:03:00.0/Q" /etc/ibprov/ibprov.toml | sed '$d' >/run/plan.toml
}
report() { [ -e "/run/ibprov/pf/$1.json" ]; }
is_right() { grep -q '"verdict": "right"' "/run/ibprov/pf/$1.json" 2>/dev/null; }
bound_again() { # PF: its driver goes and comes; the report of before is removed
	echo "$1" >/sys/bus/pci/drivers/mlx5_core/unbind
	rm -f "/run/ibprov/pf/$1.json"
	echo "$1" >/sys/bus/pci/drivers/mlx5_core/bind
}

phase "1. later than the deadline: put right without a hand"
cp /run/ibprov/boot.json "$OUT/boot-then.json"
for pf in "$late" "$ofed" "$mainline"; do
	within 90 is_right "$pf" || echo "nobody cared for $pf"
done
facts "$late" >"$OUT/late.facts"

phase "2. the driver of a PF goes and comes, a PF is plugged in"
bound_again "$ofed"
bound_again "$mainline"
knobs "$late/rdma_delay_ms=0"
echo 1 >"$pci/$late/remove"
rm -f "/run/ibprov/pf/$late.json"
echo 1 >/sys/bus/pci/rescan
for pf in "$ofed" "$mainline" "$late"; do
	within 60 report "$pf" || echo "nobody cared for $pf again"
done
both reloaded
facts "$late" >"$OUT/plugged.facts"

# From here on only this script applies. On a busy machine systemd tells of a PF's bind
# seconds late, and would carry out /etc's plan amid another one.
ln -s /dev/null /run/systemd/system/ibprov-pf@.service
systemctl daemon-reload
none_at_work() { [ -z "$(systemctl list-units --no-legend --state=activating 'ibprov-pf@*')" ]; }
within 60 none_at_work || { echo "ibprov-pf@ does not end"; exit 1; }

phase "3. RDMA numbers not in VF order, and a VF whose probe fails"
echo 0 >"$pci/$ofed/sriov_numvfs"
knobs "0000:01:00.1/probe_delay_ms=700" "0000:01:00.3/probe_errno=ETIMEDOUT"
apply one-fails "$ofed"
facts "$ofed" >"$OUT/one-fails.ofed"
for n in 0 1 2 3; do
	echo "$n $(ls "$pci/$ofed/virtfn$n/infiniband" 2>/dev/null)"
done >"$OUT/numbers"
knobs "0000:01:00.1/probe_delay_ms=0" "0000:01:00.3/probe_errno=0"
apply repaired "$ofed"
facts "$ofed" >"$OUT/repaired.ofed"

phase "4. firmware that drops what is written, or goes on with the old GUID"
template 02:00:00:71
knobs "pf/guid_write=drop"
apply dropped --config /run/plan.toml
knobs "pf/guid_write=ok"
apply set-now --config /run/plan.toml
both set-now
template 02:00:00:72
knobs "0000:01:00.3/latch=stale" "0000:02:00.3/latch=stale"
apply stale --config /run/plan.toml

phase "5. no room in the firmware; no SR-IOV at all"
echo 0 >"$pci/$ofed/sriov_numvfs"
knobs "$ofed/sriov_errno=ENOSPC"
apply no-room "$ofed"
facts "$ofed" >"$OUT/no-room.facts"
sed 's/0000:03:00.0/0000:04:00.0/' /etc/ibprov/ibprov.toml >/run/plan.toml
apply no-sriov --config /run/plan.toml 0000:04:00.0
phase end
