set -u
. /usr/lib/bed/vf.sh
. /usr/lib/bed/sm.sh
one=0001:01:00.0 two=0001:02:00.0 three=0001:03:00.0
phase "drivers"
modprobe -a ib_umad ib_ipoib
ports() { [ "$(ls -d $pci/$one/infiniband_mad/issm* $pci/$two/infiniband_mad/issm* $pci/$three/infiniband_mad/issm* 2>/dev/null | wc -l)" = 3 ]; }
within 240 ports || echo "not: three ports"
udevadm settle
a=$(port_guid $one) b=$(port_guid $two) c=$(port_guid $three)
unit=$(unit_of $one) second=$(unit_of $two)
drop_ins=/etc/systemd/system/ibprov-opensm@.service.d
pkeys() { cat $pci/"$1"/infiniband/*/ports/1/pkeys/* | grep -v 0x0000 | sort | tr '\n' ' '; }
has() { pkeys "$1" | grep -q "$2"; }
status() { ibprov status --format json >"$OUT/$1.json"; }
running() { grep -lsa "/run/ibprov/opensm/$1/opensm.con[f]" /proc/[0-9]*/cmdline | wc -l; }
is_running() { [ "$(running "$1")" = 1 ]; }
took() { # WORDS COMMAND...: within its seconds, with the time
	words=$1 before=$(uptime_ms)
	shift
	if within "$@"; then echo "$words: $(($(uptime_ms) - before)) ms" >>"$OUT/times"; else echo "not: $words"; fi
}
# So many starts of one unit are a matter of this script.
restart() {
	systemctl reset-failed "$@"
	systemctl restart "$@"
}
master() { # PCI: who is, by that port
	sminfo -C "$(ls $pci/"$1"/infiniband)" -P 1 2>/dev/null
}
mastered() { master $two | grep -q "priority $1 state 3 SMINFO_MASTER"; }
# led_by PCI: by what the master has last set; for waits of a minute, as it costs little.
led_by() {
	first lid $pci/"$1"/infiniband/*/ports/1/lid
	first sm_lid $pci/$two/infiniband/*/ports/1/sm_lid
	[ "$lid" = "$sm_lid" ]
}
partitions='partitions = "/etc/opensm/partitions.conf"'
entries() { # [LINE]: the same two, the first with that line
	{
		entry "$a" 14 "$(printf '%s\n%s' "$partitions" "${1-}")"
		entry "$b" 3 'partitions = "/etc/opensm/second.conf"'
	} >/etc/ibprov/ibprov.toml
}
both() { is "$a" "$1" && is "$b" "$2"; }

phase "sminfo hangs"
# The machine has booted.
systemctl show -p After multi-user.target >"$OUT/boot-waits-for"
within 240 both waiting waiting || echo "not: waiting for sminfo"
status hanging

phase "a foreign master"
rm "$drop_ins/hang.conf"
systemctl daemon-reload
restart 'ibprov-opensm@*'
named() { [ "$(ibprov status --format json | grep -c '"reason": "0x')" = 2 ]; }
within 240 named || echo "not: named"
status waiting
systemctl show -p StatusText --value "$unit" >"$OUT/status-text"
echo "opensm beside the foreign master: $(running "$a") $(running "$b")"
phase "a peer"
entries 'peers = ["0c42a10300ffff00"]'
restart "$unit"
within 240 both standby waiting || echo "not: standby"
status standby
phase "a reload of one that waits"
main() { systemctl show -p MainPID --value "$1"; }
old=$(main "$second")
systemctl reload "$second"
echo "reload of one that waits: $?"
both standby waiting || echo "not: waiting after the reload"
[ "$(main "$second")" = "$old" ] || echo "not: the same process"
phase "takeover from the peer"
printf 'q=0x0011 ALL=full ;\n' >>/etc/opensm/second.conf
knobs pf/sm=real
took "takeover from the peer" 240 led_by $one
within 240 mastered 14 || echo "not: master"
# The second has waited for no more than that, and its file has got an error meanwhile.
within 240 both master refused || echo "not: master and refused"
cp /etc/opensm/partitions.conf /etc/opensm/second.conf
restart "$second"
within 240 both master standby || echo "not: master and standby"
status pair

phase "a child of each port"
within 240 has $two 0x8010 || echo "not: 0x8010"
carrier() { [ "$(ip -n "$1" -o link show "$2" | grep -c LOWER_UP)" = 1 ]; }
child() { # PCI NAMESPACE ADDRESS
	parent=$(ls $pci/"$1"/net)
	ip link set "$parent" up
	echo 0x8010 >"/sys/class/net/$parent/create_child"
	ip netns add "$2"
	ip link set "$parent.8010" netns "$2" name child
	ip -n "$2" link set child up
	ip -n "$2" addr add "$3/24" dev child
}
child $one a 10.0.0.1
child $two b 10.0.0.2
within 240 carrier a child || echo "not: carrier of the first"
within 240 carrier b child || echo "not: carrier of the second"
ip netns exec b ping -q -c 3 -i 0.2 -W 5 10.0.0.1 >"$OUT/ping"
for ns in a b; do
	ip -n $ns link del child
	ip netns del $ns
done

phase "killed"
old=$(main "$unit")
systemctl kill -s KILL "$unit"
back() { is_running "$a" && [ "$(main "$unit")" != "$old" ]; }
took "back after a kill" 240 back
within 240 mastered 14 || echo "not: master after a kill"
phase "killed for longer"
printf '[Service]\nRestart=no\n' >"$drop_ins/once.conf"
systemctl daemon-reload
systemctl kill -s KILL "$unit"
took "takeover by the standby" 240 led_by $two
within 240 mastered 3 || echo "not: the standby is master"
rm "$drop_ins/once.conf"
systemctl daemon-reload
restart "$unit"
took "master again" 240 mastered 14
within 240 is "$a" master || echo "not: master again by status"

phase "partitions with an error"
within 240 has $two 0x8010 || echo "not: 0x8010 again"
pkeys $two >"$OUT/pkeys.before"
cp /etc/opensm/partitions.conf /run/good
printf 'q=0x0011 ALL=full ;\n' >>/etc/opensm/partitions.conf
systemctl reload "$unit" 2>/dev/null
echo "reload: $?"
sleep 5
pkeys $two >"$OUT/pkeys.refused"
is_running "$a" || echo "not: running after the reload"
systemctl kill -s HUP "$unit"
lost() { ! has $two 0x8010; }
within 240 lost || echo "not: lost by hand"
pkeys $two >"$OUT/pkeys.by-hand"
cp /run/good /etc/opensm/partitions.conf
systemctl reload "$unit"
echo "reload: $?"
within 240 has $two 0x8010 || echo "not: 0x8010 after the reload"
printf 'q=0x0011 ALL=full ;\n' >>/etc/opensm/partitions.conf
restart "$unit"
within 240 is "$a" refused || echo "not: refused"
status bad
cp /run/good /etc/opensm/partitions.conf
restart "$unit"
within 240 mastered 14 || echo "not: master with the good file"

phase "unbound"
echo $one >/sys/bus/pci/drivers/mlx5_core/unbind
gone() { ! systemctl is-active -q "$unit" && [ "$(running "$a")" = 0 ]; }
took "stopped after unbind" 240 gone
status unbound
echo $one >/sys/bus/pci/drivers/mlx5_core/bind
took "back after bind" 240 is_running "$a"
within 240 mastered 14 || echo "not: master after bind"
unit=$(unit_of $one)

phase "the distribution's on another port of this host"
entries
echo "sm_priority 15" >/etc/opensm/opensm.conf
systemctl start "opensm@0x$c.service"
within 240 led_by $three || echo "not: master of the distribution"
restart "$unit"
within 240 both standby standby || echo "not: standby beside another port"
phase "the distribution's on the same port"
systemctl stop "$unit" "opensm@0x$c.service"
systemctl start "opensm@0x$a.service"
systemctl start "$unit"
within 240 is "$a" refused || echo "not: refused on the same port"
status same-port
ibprov config check >"$OUT/same-port.config-check"
echo "config check beside it: $?"
systemctl stop "opensm@0x$a.service"
restart "$unit"
within 240 is_running "$a" || echo "not: running again"

phase "VFs"
before=$(instances | wc -l)
echo 20 >$pci/$one/sriov_numvfs
udevadm settle
trigger
echo "issm devices: $(ls -d /sys/class/infiniband_mad/issm* | wc -l)"
echo "instances: $(($(instances | wc -l) - before)) more"
echo 0 >$pci/$one/sriov_numvfs
phase "ports on which none can run"
entry 0002c903000e8acd 3 >>/etc/ibprov/ibprov.toml
knobs $three/link_type=eth
echo $three >/sys/bus/pci/drivers/mlx5_core/unbind
echo $three >/sys/bus/pci/drivers/mlx5_core/bind
ethernet() { grep -qs Ethernet $pci/$three/infiniband/*/ports/1/link_layer; }
within 240 ethernet || echo "not: an Ethernet port"
entry "$c" 3 >>/etc/ibprov/ibprov.toml
status absent
ibprov config check >"$OUT/config-check"
echo "config check: $?"

systemctl list-units --all --plain --no-legend 'ibprov-opensm@*' >"$OUT/instances"
journalctl -b -o short-monotonic -u 'ibprov-opensm@*' >"$OUT/sm.log"
systemctl disable -q --now ibprov-opensm.target
stopped() { ! grep -qsx opensm /proc/[0-9]*/comm; }
within 240 stopped || echo "not: stopped with the target"
dmesg >"$OUT/dmesg"
true
