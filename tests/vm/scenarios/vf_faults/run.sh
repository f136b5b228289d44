set -u
. /usr/lib/bed/vf.sh
one=0001:01:00.0
two=0001:02:00.0
late=0001:03:00.0
both() { facts "$one" >"$OUT/$1.one"; facts "$two" >"$OUT/$1.two"; }
template() { # FIRST-BYTES [KEY = VALUE]: another configuration, of the first two PFs
	sed "s/02:00:00:70/$1/; /0001:03:00.0/Q" /etc/ibprov/ibprov.toml | sed '$d' >/run/plan.toml
	[ $# = 1 ] || sed -i "s/^vfs = 4/&\n$2/" /run/plan.toml
}
report() { [ -e "/run/ibprov/pf/$1.json" ]; }
is_right() { grep -q '"verdict": "done"' "/run/ibprov/pf/$1.json" 2>/dev/null; }
forget() { for forgotten; do rm -f "/run/ibprov/pf/$forgotten.json"; done; }
cared() { # WHEN PF...: each has its plan, without a hand
	when=$1
	shift
	for pf; do
		within 60 is_right "$pf" || echo "nobody cared for $pf $when"
	done
}

phase "1. later than the deadline: put right without a hand"
cp /run/ibprov/boot.json "$OUT/boot-then.json"
for pf in "$late" "$one" "$two"; do
	within 90 is_right "$pf" || echo "nobody cared for $pf"
done
facts "$late" >"$OUT/late.facts"

phase "2. the driver of a PF goes and comes, a PF is plugged in"
forget "$one" "$late"
echo "$one" >/sys/bus/pci/drivers/mlx5_core/unbind
echo "$one" >/sys/bus/pci/drivers/mlx5_core/bind
knobs "$late/slow.ALLOC_XRCD=0"
echo 1 >"$pci/$late/remove"
echo 1 >/sys/bus/pci/rescan
cared "when bound again" "$one" "$late"
both rebound
facts "$late" >"$OUT/plugged.facts"

# From here on only this script applies. On a busy machine systemd tells of a PF's bind
# seconds late, and would carry out /etc's plan amid another one.
ln -s /dev/null /run/systemd/system/ibprov-pf@.service
systemctl daemon-reload
pf_units_ended

phase "3. RDMA numbers not in VF order, and a VF whose probe fails"
echo 0 >"$pci/$one/sriov_numvfs"
knobs "0001:01:00.1/slow.INIT_HCA=3000" "0001:01:00.3/fail.INIT_HCA=0:4"
apply one-fails "$one"
facts "$one" >"$OUT/one-fails.facts"
for n in 0 1 2 3; do
	echo "$n $(ls "$pci/$one/virtfn$n/infiniband" 2>/dev/null)"
done >"$OUT/numbers"
knobs "0001:01:00.1/slow.INIT_HCA=0" "0001:01:00.3/fail.INIT_HCA=9999"
apply repaired "$one"
facts "$one" >"$OUT/repaired.facts"

phase "4. firmware that drops what is written, refuses it, or goes on with the old GUID"
template 02:00:00:71
knobs "pf/guid_write=drop"
apply dropped --config /run/plan.toml
knobs "pf/guid_write=ok"
apply set-now --config /run/plan.toml
both set-now
template 02:00:00:72
knobs "$one/guid_write=9"
apply refused --config /run/plan.toml "$one"
facts "$one" >"$OUT/refused.facts"
knobs "$one/guid_write=ok" "0001:01:00.3/latch=stale" "0001:02:00.3/latch=stale"
apply stale --config /run/plan.toml
knobs "0001:01:00.3/latch=fresh" "0001:02:00.3/latch=fresh"
template 02:00:00:72 'link-state = "up"'
knobs "$one/policy_write=drop" "$two/policy_write=9"
apply policy --config /run/plan.toml
knobs "pf/policy_write=ok" "$one/policy_write=ok" "$two/policy_write=ok"
apply policy-now --config /run/plan.toml
both policy-now

phase "5. firmware has no room for a VF; no SR-IOV at all"
echo 0 >"$pci/$one/sriov_numvfs"
knobs "0001:01:00.1/fail.ENABLE_HCA=0:15"
apply no-room "$one"
facts "$one" >"$OUT/no-room.facts"
knobs "0001:01:00.1/fail.ENABLE_HCA=9999"
sed 's/0001:03:00.0/0001:04:00.0/' /etc/ibprov/ibprov.toml >/run/plan.toml
apply no-sriov --config /run/plan.toml 0001:04:00.0

phase "6. eight probes that hang: a kill, and only the unit's own way to stop; signals"
# Under another name, so that udev starts no other run.
cp /usr/lib/systemd/system/ibprov-pf@.service /run/systemd/system/killed@.service
systemctl daemon-reload
unit=killed@sys-devices-pci0001:01-$one.service
record=/run/ibprov/pf/$one.undo
probing=$pci/$one/sriov_drivers_autoprobe
sed -i '0,/^vfs = 4/s//vfs = 9/' /etc/ibprov/ibprov.toml
echo 0 >"$pci/$one/sriov_numvfs"
all_begun() { [ "$(ls -d "$pci/$one"/virtfn*/driver 2>/dev/null | wc -l)" = 9 ]; }
stopped() { [ "$(systemctl is-active "$unit")" = failed ]; }
has_let_go() { flock -n "/run/ibprov/lock/pf-$one" true; }
tell() { # NAME: what is to be put back, and whether a run is at work
	echo "$1: autoprobe $(cat "$probing") record $([ -e "$record" ] && echo kept || echo none) lock $(has_let_go && echo free || echo held)"
}
hang() { knobs "$one+vf/cmd_timeout_ms=3600000" "$one+vf/drop.INIT_HCA=1" "0001:01:00.1/drop.INIT_HCA=0"; }
let_go() { # NAME
	knobs "$one+vf/drop.INIT_HCA=late"
	within 60 has_let_go
	tell "$1"
	# Whoever reads it waits for a probe that hangs.
	cat "$pci/$one"/virtfn*/driver_override | sort | uniq -c >"$OUT/$1.overrides"
	knobs "$one+vf/drop.INIT_HCA=0"
}
hang
systemctl start --no-block "$unit"
within 60 all_begun || echo "not all probes have begun"
# As it is after a kill in the middle of a bind.
echo vfio-pci >"$pci/0001:01:00.1/driver_override"
main=$(systemctl show -p MainPID --value "$unit")
for child in $(cat "/proc/$main/task/$main/children"); do
	case $(tr '\0' ' ' <"/proc/$child/cmdline") in *" worker $one "*) echo "$child" >"$OUT/child" ;; esac
done
kill -9 "$main"
within 60 stopped || echo "$unit does not stop"
tell stopped
ibprov apply --undo "$one" 2>"$OUT/undo.log"
echo "undo: $?"
ibprov apply --undo "$one" --format json >"$OUT/undo.json" 2>/dev/null
let_go killed
# What an earlier run has left is put back by the next.
left() { echo 0 >"$probing"; echo '{"autoprobe":true}' >"$record"; }
left
hang
apply signal "$one" &
signalled=$!
within 60 all_begun || echo "not all probes have begun again"
# TERM is asked of the program, which is the shell's child.
kill -TERM "$(cat "/proc/$signalled/task/$signalled/children")"
wait "$signalled"
tell signal
let_go signal-through
left
ibprov apply --undo "$one" 2>"$OUT/undone.log"
echo "undone: $?"
tell undone
echo 0 >"$pci/$one/sriov_numvfs"
knobs "$one/drop.ENABLE_HCA=1"
dropped() { sed -n 's/^command_dropped //p' "/sys/kernel/debug/ibcard/$one/counters"; }
before=$(dropped)
is_counting() { [ "$(dropped)" != "$before" ]; }
apply counting "$one" &
signalled=$!
within 60 is_counting || echo "the number is not changed"
kill -TERM "$(cat "/proc/$signalled/task/$signalled/children")"
wait "$signalled"
tell counting
knobs "$one/drop.ENABLE_HCA=late"
within 60 has_let_go
knobs "$one/drop.ENABLE_HCA=0"
tell counted
echo "probed: $(ls -d "$pci/$one"/virtfn*/driver 2>/dev/null | wc -l) of $(ls -d "$pci/$one"/virtfn* | wc -l)"
dmesg >"$OUT/dmesg"
phase end
