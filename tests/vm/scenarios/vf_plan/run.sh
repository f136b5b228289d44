set -u
. /usr/lib/bed/vf.sh
pf=0000:01:00.0

# 1. As the boot has left it.
phase 1
udevadm settle
facts "$pf" >"$OUT/fresh"
counters >"$OUT/counters.fresh"

# 2. All as planned: nothing is touched.
phase 2
listen
counters >"$OUT/counters.before"
apply again
udevadm settle
counters >"$OUT/counters.after"
deaf
facts "$pf" >"$OUT/again"

# 3. One GUID is changed: one VF is bound anew.
phase 3
echo 02:00:00:00:00:00:de:ad >"$pci/$pf/sriov/3/port"
counters >"$OUT/counters.one-before"
apply one
counters >"$OUT/counters.one-after"
facts "$pf" >"$OUT/one"

# A new number of VFs is an event of the PF, for which udev's instance would put the
# plan of /etc back.
systemctl mask --runtime --quiet "ibprov-pf@.service"
template() { sed "s/02:00:00:70/$1/; s/vfs = 9/vfs = 4/" /etc/ibprov/ibprov.toml >/run/plan.toml; }

phase "4. what is written is dropped, or the VF goes on with the old GUID"
template 02:00:00:70
apply four --config /run/plan.toml
template 02:00:00:71
knobs "pf/guid_write=drop"
apply dropped --config /run/plan.toml
knobs "pf/guid_write=ok"
apply set-now --config /run/plan.toml
facts "$pf" >"$OUT/set-now"
template 02:00:00:72
knobs "0000:01:00.3/latch=stale"
apply stale --config /run/plan.toml

phase "5. no room in the firmware"
echo 0 >"$pci/$pf/sriov_numvfs"
knobs "$pf/sriov_errno=ENOSPC"
apply no-room "$pf"
facts "$pf" >"$OUT/no-room.facts"
phase end
