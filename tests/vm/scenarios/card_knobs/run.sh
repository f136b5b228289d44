set -u
. /usr/lib/bed/vf.sh
card=/sys/kernel/debug/ibcard
planned=0001:01:00.0 recovers=0001:02:00.0 goes=0001:03:00.0 no_sm=0001:04:00.0 silent=0001:05:00.0 eth=0001:06:00.0
template() { # FIRST-BYTES: another configuration, of the first PF
	sed "s/02:00:00:70/$1/; /0001:02:00.0/Q" /etc/ibprov/ibprov.toml | sed '$d' >/run/plan.toml
}
plan() { # NAME: apply it
	apply "$1" --config /run/plan.toml $planned
}
timed() { # NAME COMMAND...: its exit code and how long it took
	timed=$1
	shift
	before=$(uptime_ms)
	"$@" >"$OUT/$timed" 2>"$OUT/$timed.error"
	echo "$timed: $?"
	echo "$timed took: $(($(uptime_ms) - before))"
}
status() { timed "$1.json" ibprov status --format json; }
mark() { mark=$1; echo "mark $1" >/dev/kmsg; }
# since: what the kernel has said since the mark
since() { dmesg | sed "1,/mark $mark/d"; }
said() { since | grep -q "$1"; }
said_times() { [ "$(since | grep -c "$1")" -ge "$2" ]; }
rdma() { ls "$pci/$1"/infiniband/mlx5_* >/dev/null 2>&1; }
no_rdma() { ! rdma "$1"; }
state() { cat "$pci/$1"/infiniband/*/ports/1/state; }
active() { state "$1" 2>/dev/null | grep -q ACTIVE; }
was_reset() { grep -q '^reset [1-9]' "$card/$1/counters"; }

# From here on only this script applies.
ln -s /dev/null /run/systemd/system/ibprov-pf@.service
systemctl daemon-reload
none_at_work() { [ -z "$(systemctl list-units --no-legend --state=activating 'ibprov-pf@*')" ]; }
within 60 none_at_work || { echo "ibprov-pf@ does not end"; exit 1; }
udevadm settle

phase "as booted"
status booted
ibprov status -v >"$OUT/booted.text"
for address in $planned $recovers 0001:02:00.1 $goes $no_sm $silent $eth; do
	for path in "$pci/$address"/infiniband/*/ports/1/state "$pci/$address"/infiniband/*/ports/1/rate \
		"$pci/$address"/infiniband/*/ports/1/link_layer "$pci/$address"/infiniband/*/*_guid \
		"$pci/$address"/infiniband/*/fw_ver "$pci/$address"/infiniband/*/board_id \
		"$pci/$address"/infiniband/*/ports/1/gids/0 "$pci/$address"/infiniband/*/ports/1/pkeys/[012] \
		"$pci/$address"/current_link_* "$pci/$address/sriov_totalvfs"; do
		first value "$path"
		[ ! -e "$path" ] || echo "$address ${path##*/}: $value"
	done
	for n in page page_of_pf; do
		echo "$address $n: $(sed -n "s/^$n //p" "$card/$address/held")"
	done
	timed "vpd.$address" timeout 20 cat "$pci/$address/vpd"
done >"$OUT/booted"
echo "$planned.1 page_of_pf: $(sed -n "s/^page_of_pf //p" "$card/0001:01:00.1/held")" >>"$OUT/booted"

phase "GUIDs and policies that are dropped or refused"
template 02:00:00:71
knobs "$planned/guid_write=drop"
plan dropped
knobs "$planned/guid_write=4"
plan refused
knobs "$planned/guid_write=ok"
plan set-now
facts $planned >"$OUT/set-now"
knobs "$planned/policy_write=3"
echo 0 >"$pci/$planned/sriov_numvfs"
plan no-policy
knobs "$planned/policy_write=drop"
plan policy-dropped
knobs "$planned/policy_write=ok"
plan policy-now

phase "a VF that goes on with the old GUIDs"
template 02:00:00:72
knobs 0001:01:00.2/latch=stale
plan stale
knobs 0001:01:00.2/latch=fresh
plan fresh
facts $planned >"$OUT/fresh"

phase "a VF whose firmware never answers, and one without its pages"
echo 0 >"$pci/$planned/sriov_numvfs"
knobs 0001:01:00.2/drop.INIT_HCA=1
plan unanswered
knobs 0001:01:00.2/drop.INIT_HCA=0
plan answered
echo 0 >"$pci/$planned/sriov_numvfs"
knobs "$planned/fail.MANAGE_PAGES=0:9:1"
plan starved
grep '^page_refused' "$card/$planned/counters"
echo 0 >"$pci/$planned/sriov_numvfs"
plan fed
facts $planned >"$OUT/fed"
echo "lent after: $(sed -n "s/^page_of_pf //p" "$card/0001:01:00.1/held")"

phase "slow commands"
knobs "$goes/slow.QUERY_HCA_VPORT_CONTEXT=700"
timed slow.state state $goes
knobs "$goes/slow.QUERY_HCA_VPORT_CONTEXT=0" "$goes/slow=600"
timed slow.all state $goes
knobs "$goes/slow=0"

phase "an SM that comes late"
knobs "$no_sm/sm=1" "$silent/sm_delay_ms=0"
within 10 active $no_sm || echo "$no_sm stays in $(state $no_sm)"
within 10 active $silent || echo "$silent stays in $(state $silent)"

phase "a syndrome without and with a request for a reset"
mark health
knobs "$no_sm/rfr=0" "$no_sm/syndrome=8"
knobs "$recovers/syndrome=1"
within 15 was_reset $recovers || echo "the card was not reset"
knobs "$recovers/syndrome=0"
within 60 said_times "0001:02:00.*health recovery succeeded" 4 || echo "not all have recovered"
# All that time the other card has shown its syndrome; the driver looks every 2 s.
grep '^reset' "$card/$no_sm/counters" >"$OUT/not-reset"
knobs "$no_sm/syndrome=0"
since >"$OUT/health"
udevadm settle
within 20 active $recovers || echo "the port is not active again"
status recovered
apply mended $recovers
facts $recovers >"$OUT/mended"

phase "a VF whose recovery fails: its driver does not try again"
# A card that has had no fatal error yet: the driver recovers a second one only after minutes.
mark lost
lost=0001:01:00.2
knobs "$lost/fail.CREATE_EQ=0:1" "$planned/syndrome=1"
within 15 was_reset $planned || echo "the card has not been reset"
knobs "$planned/syndrome=0"
within 60 said "$lost.*health recovery failed" || echo "the recovery has not failed"
within 60 said_times "0001:01:00.*health recovery succeeded" 2 || echo "not all others have recovered"
knobs "$lost/fail.CREATE_EQ=9999"
udevadm settle
timed lost.plan.json ibprov plan --format json --config /run/plan.toml
plan found
facts $planned >"$OUT/found"
timed found.plan.json ibprov plan --format json --config /run/plan.toml

phase "a card that is gone, and back"
knobs "$goes/gone=1"
within 15 no_rdma $goes || echo "the driver has not seen that it is gone"
status gone
timed gone.check.json ibprov check --format json
knobs "$goes/link_delay_ms=3000" "$goes/active_delay_ms=3000" "$goes/gone=0"
within 30 rdma $goes || echo "the driver has not seen that it is back"
last=
until [ "$last" = "4: ACTIVE" ] || [ "$(uptime_ms)" -gt $((before + 90000)) ]; do
	now=$(state $goes)
	[ "$now" = "$last" ] || echo "$now"
	last=$now
	sleep 0.2
done >"$OUT/states"
udevadm settle
status back

phase "a card that never answers again"
mark silent
knobs "$silent/silent=1"
within 20 said "$silent.*reached miss count" || echo "the driver has not seen that it is silent"
status silent
timed silent.check.json ibprov check --format json
knobs "$silent/silent=0"
within 90 active $silent || echo "$silent does not answer again"
status answers
dmesg >"$OUT/dmesg"
true
