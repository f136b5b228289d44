set -u
. /usr/lib/bed/vf.sh
. /usr/lib/bed/sm.sh
one=0001:01:00.0 two=0001:02:00.0 three=0001:03:00.0
systemctl disable --now opensm.service 'opensm@*' >/dev/null 2>&1
modprobe -a ib_umad ib_ipoib
udevadm settle
a=$(port_guid $one) b=$(port_guid $two) c=$(port_guid $three)
unit=$(unit_of $one)
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
entries() { # [LINE]: for both
	{
		entry "$a" 14 "$1"
		entry "$b" 3 "$1"
	} >/etc/ibprov/ibprov.toml
}
mkdir -p /etc/ibprov

phase "a foreign master"
echo "sm_priority 15" >/etc/opensm/opensm.conf
systemctl start "opensm@0x$c.service"
foreign() { sminfo -C "$(ls $pci/$one/infiniband)" -P 1 2>/dev/null | grep -q 'priority 15 state 3'; }
within 60 foreign || echo "not: a foreign master"
printf 'Default=0x7fff, ipoib : ALL=full ;\np=0x0010, ipoib : ALL=full ;\n' >/etc/opensm/partitions.conf
entries 'partitions = "/etc/opensm/partitions.conf"'
systemctl enable -q ibprov-opensm.target
trigger
within 60 is "$a" waiting && within 60 is "$b" waiting || echo "not: waiting"
status waiting
systemctl show -p StatusText --value "$unit" >"$OUT/status-text"
echo "opensm beside the foreign master: $(running "$a") $(running "$b")"
phase "a peer"
entries "$(printf 'partitions = "/etc/opensm/partitions.conf"\npeers = ["%s"]' "$c")"
systemctl restart 'ibprov-opensm@*'
within 60 is "$a" standby && within 60 is "$b" standby || echo "not: standby"
status standby
phase "takeover from the peer"
systemctl stop "opensm@0x$c.service"
mastered() { sminfo -C "$(ls $pci/$two/infiniband)" -P 1 2>/dev/null | grep -q "priority $1 state 3 SMINFO_MASTER"; }
took "takeover from the peer" 75 mastered 14
within 30 is "$a" master && within 30 is "$b" standby || echo "not: master and standby"
status pair
within 60 has $two 0x8010 || echo "not: 0x8010"

phase "killed"
old=$(systemctl show -p MainPID --value "$unit")
kill -9 "$old"
back() { is_running "$a" && [ "$(systemctl show -p MainPID --value "$unit")" != "$old" ]; }
took "back after a kill" 30 back
within 60 mastered 14 || echo "not: master after a kill"
phase "stopped"
systemctl stop "$unit"
took "takeover by the standby" 75 mastered 3
systemctl start "$unit"
took "master again" 60 mastered 14
within 60 is "$a" master || echo "not: master again by status"

phase "partitions with an error"
within 60 has $two 0x8010 || echo "not: 0x8010 again"
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
within 30 lost || echo "not: lost by hand"
pkeys $two >"$OUT/pkeys.by-hand"
cp /run/good /etc/opensm/partitions.conf
systemctl reload "$unit"
echo "reload: $?"
within 30 has $two 0x8010 || echo "not: 0x8010 after the reload"
printf 'q=0x0011 ALL=full ;\n' >>/etc/opensm/partitions.conf
systemctl restart "$unit"
within 30 is "$a" refused || echo "not: refused"
status bad
cp /run/good /etc/opensm/partitions.conf
systemctl restart "$unit"
within 60 mastered 14 || echo "not: master with the good file"

phase "unbound"
echo $one >/sys/bus/pci/drivers/mlx5_core/unbind
gone() { ! systemctl is-active -q "$unit" && [ "$(running "$a")" = 0 ]; }
took "stopped after unbind" 30 gone
status unbound
echo $one >/sys/bus/pci/drivers/mlx5_core/bind
took "back after bind" 90 is_running "$a"
within 90 mastered 14 || echo "not: master after bind"

phase "VFs"
before=$(instances | wc -l)
echo 20 >$pci/$one/sriov_numvfs
udevadm settle
trigger
echo "issm devices: $(ls -d /sys/class/infiniband_mad/issm* | wc -l)"
echo "instances: $(($(instances | wc -l) - before)) more"
echo 0 >$pci/$one/sriov_numvfs
phase "a GUID that is not here"
entry 0002c903000e8acd 3 >>/etc/ibprov/ibprov.toml
status absent
ibprov config check >"$OUT/config-check"
echo "config check: $?"

systemctl list-units --all --plain --no-legend 'ibprov-opensm@*' >"$OUT/instances"
journalctl -b -o short-monotonic -u 'ibprov-opensm@*' >"$OUT/sm.log"
systemctl disable -q --now ibprov-opensm.target
stopped() { ! grep -qsx opensm /proc/[0-9]*/comm; }
within 10 stopped || echo "not: stopped with the target"
dmesg >"$OUT/dmesg"
true
