set -u
. /usr/lib/bed/vf.sh
pf=0000:01:00.0
udevadm settle
pf_units_ended
ip -d link show dev ib0 >"$OUT/netlink"
facts "$pf" >"$OUT/fresh"
ls /sys/kernel/debug/ibsim/mlx5_core >"$OUT/functions"
counters >"$OUT/counters.fresh"

phase "run again"
apply again
counters >"$OUT/counters.again"
facts "$pf" >"$OUT/again"

# Another plan: each VF of the host shows the old GUIDs.
systemctl mask --runtime --quiet "ibprov-pf@.service"
template() { sed "s/02:00:00:70/$1/" /etc/ibprov/ibprov.toml >/run/plan.toml; }
phase "another plan"
template 02:00:00:71
apply other --config /run/plan.toml
facts "$pf" >"$OUT/other"

# Told with success, and the VFs go on with what they had.
phase "stale"
template 02:00:00:72
knobs "0000:01:00.2/latch=stale"
apply stale --config /run/plan.toml
knobs "0000:01:00.2/latch=fresh"
phase end
