set -u
. /usr/lib/bed/vf.sh
one=0001:01:00.0 two=0001:02:00.0
systemctl stop opensm 'opensm@*' 2>/dev/null
modprobe -a ib_umad ib_ipoib
udevadm settle
states() { cat $pci/$one/infiniband/*/ports/1/state $pci/$two/infiniband/*/ports/1/state; }
up() { [ "$(states | grep -c ACTIVE)" = 2 ]; }
carrier() { [ "$(ip -n "$1" -o link show "$2" | grep -c LOWER_UP)" = 1 ]; }
hca=$(ls $pci/$one/infiniband)

phase "no subnet manager"
ip -o link show >"$OUT/links"
states | sort | uniq -c | sed 's/ *//' >"$OUT/states.before"
ibprov status --format json >"$OUT/before.json"
ibprov check --format json >"$OUT/before.check.json" 2>"$OUT/before.check.err"
smpquery -C "$hca" -P 1 -D nodeinfo 0,1,2 >"$OUT/nodeinfo" 2>&1
echo "sminfo before: $(sminfo -C "$hca" -P 1 >/dev/null 2>&1; echo $?)"

phase "opensm"
guid=0x$(tr -d : <"/sys/class/infiniband/$hca/node_guid")
systemctl start "opensm@$guid.service"
within 90 up || echo "not up"
states | sort | uniq -c | sed 's/ *//' >"$OUT/states.after"
sminfo -C "$hca" -P 1 >"$OUT/sminfo" 2>&1
ibnetdiscover -C "$hca" -P 1 >"$OUT/fabric" 2>&1
ibprov status --format json >"$OUT/after.json"

phase "virtual ports"
# The distribution's subnet manager serves none.
cat >/run/plan.toml <<END
[[pf]]
pci = "$one"
vfs = 1
guid.template = "02:00:00:00:00:12:{kind:8}:{vf:8}"
END
ibprov apply --config /run/plan.toml >"$OUT/apply" 2>&1
ibprov status --config /run/plan.toml --format json >"$OUT/virtual.json"
ibprov check --config /run/plan.toml --format json >"$OUT/virtual.check.json" 2>/dev/null
ibprov metrics --config /run/plan.toml >"$OUT/virtual.metrics"
. /usr/lib/bed/sm.sh
guest=$(vf $one 0)
entry "$(port_guid "$guest")" 3 >/run/vf.toml
ibprov opensm run --config /run/vf.toml "$(ls $pci/"$guest"/infiniband_mad | grep issm)" 2>"$OUT/on-a-vf"
echo "on a VF: $?"
echo 0 >$pci/$one/sriov_numvfs

phase "partitions"
a=$(ls $pci/$one/net) b=$(ls $pci/$two/net)
first gid $pci/$one/infiniband/*/ports/1/gids/0
port=0x$(echo "${gid#*:*:*:*:}" | tr -d :)
told() { # NAME: what the verbs say now
	ibprov status --format json >"$OUT/$1.json"
	ibprov check --format json >"$OUT/$1.check.json" 2>/dev/null
	ibprov metrics >"$OUT/$1.metrics"
}
in_table() { grep -qs "$1" $pci/$one/infiniband/*/ports/1/pkeys/*; }
on_air() { [ "$(cat "/sys/class/net/$1/carrier" 2>/dev/null)" = 1 ]; }
member() { # MEMBERSHIP: of the port in the partition 0x12
	printf 'Default=0x7fff, ipoib : ALL=full ;\np12=0x0012, ipoib : SELF=full, %s=%s ;\n' \
		"$port" "$1" >/etc/opensm/partitions.conf
	systemctl kill -s HUP "opensm@$guid.service"
}
echo 0x8012 >"/sys/class/net/$a/create_child"
ip link set "$a" up
ip link set "$a.8012" up
within 30 on_air "$a" || echo "no carrier: $a"
told lacking
member limited
within 30 in_table 0x0012 || echo "not limited"
# opensm lets it into the group.
within 30 on_air "$a.8012" || echo "a limited member is not let in"
told limited
member full
within 30 in_table 0x8012 || echo "not full"
within 30 on_air "$a.8012" || echo "no carrier: $a.8012"
within 30 on_air "$a" || echo "no carrier any more: $a"
told full
echo 0x8012 >"/sys/class/net/$a/delete_child"
ip link set "$a" down

phase "IPoIB"
for ns in a b; do ip netns add $ns; done
ip link set "$a" netns a
ip link set "$b" netns b
ip -n a link set "$a" up
ip -n b link set "$b" up
ip -n a addr add 10.0.0.1/24 dev "$a"
ip -n b addr add 10.0.0.2/24 dev "$b"
within 30 carrier a "$a" || echo "no carrier: a"
within 30 carrier b "$b" || echo "no carrier: b"
ip netns exec a ping -q -c 3 -i 0.2 -W 5 10.0.0.2 >"$OUT/ping"

phase "cable"
knobs $two/link=down
down() { [ "$(states | grep -c DOWN)" = 1 ]; }
within 20 down || echo "not down"
knobs $two/link=active
within 60 up || echo "not up again"

phase "subnet managers of ibprov"
systemctl disable --now opensm.service "opensm@$guid.service" >/dev/null 2>&1
other=$(port_guid "$two")
trigger
instances >"$OUT/units.package"
entry "${guid#0x}" 14 >/run/entries.toml
entry "$other" 3 >>/run/entries.toml
echo 'options = { virt_enabled = "2" }' >>/run/entries.toml
mkdir -p /etc/ibprov
cp /run/entries.toml /etc/ibprov/ibprov.toml
trigger
instances >"$OUT/units.entry"
ibprov status --format json >"$OUT/entry.json"
rm /etc/ibprov/ibprov.toml
systemctl enable -q ibprov-opensm.target
trigger
codes() { systemctl show -p ExecMainStatus -p Result "$(unit_of "$one")" "$(unit_of "$two")"; }
ended() { [ "$(codes | grep -c ExecMainStatus=64)" = 2 ]; }
within 60 ended || echo "instances have not ended"
instances >"$OUT/units.target"
codes | sort | uniq -c >"$OUT/result.target"
cp /run/entries.toml /etc/ibprov/ibprov.toml
advised >"$OUT/advised"
sh "$OUT/advised"
is_master() { sminfo -C "$hca" -P 1 2>/dev/null | grep -q 'priority 14 state 3 SMINFO_MASTER'; }
within 60 is_master || echo "not master"
refused() { is "$other" refused; }
within 60 refused || echo "not refused"
ibprov status --format json >"$OUT/ours.json"
ibprov status >"$OUT/ours"
ibprov metrics >"$OUT/ours.metrics"
cat "/run/ibprov/opensm/${guid#0x}/opensm.conf" >"$OUT/opensm.conf"
stat -c %a "/run/ibprov/opensm/${guid#0x}/opensm.conf" >"$OUT/opensm.conf.mode"
ls "/var/lib/ibprov/opensm/${guid#0x}" >"$OUT/kept"
journalctl -b -o cat -u 'ibprov-opensm@*' >"$OUT/sm.log"
systemctl --failed --plain --no-legend >"$OUT/failed"
cp /var/log/opensm*.log "$OUT/" 2>/dev/null
dmesg >"$OUT/dmesg"
true
