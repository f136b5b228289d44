. /usr/lib/bed/iface.sh
shown() { echo "$1: $(cat "/sys/class/net/$1/mode") $(cat "/sys/class/net/$1/mtu")"; }
scene before ib0
# NetworkManager can have it activated before a process has started: it is held until ib1 is
# set, and writes over that.
hold() { systemctl kill --signal="$1" NetworkManager.service 2>/dev/null || true; }
is_set() { [ "$(cat /sys/class/net/ib1/mode)" = connected ]; }
hold STOP
/usr/lib/bed/appear 2
within 20 is_set
hold CONT
scene late ib1
/usr/lib/bed/appear 3
scene agreed ib2
is_written() { [ "$(cat "/sys/class/net/$1/mtu")" != 65520 ]; }
within 20 is_written ib0
looked ib0
echo "read back: $(systemctl is-active "$(later ib0)")"
cp "/run/ibprov/ports/$(cat /sys/class/net/ib0/ifindex).json" "$OUT/read-back.json"
for netdev in ib0 ib1 ib2; do shown "$netdev"; done
ibprov iface ib1 --dry-run >"$OUT/dry-run"
ibprov status -v >"$OUT/status"
cp /run/ibprov/boot.json "$OUT/boot.json"
profile=/etc/NetworkManager/system-connections/ib2.nmconnection
[ -e $profile ] || exit 0

# An activation that comes after the run of iface has ended: NetworkManager writes an MTU that
# the fabric could have allowed.
cat >/run/mtu.toml <<EOF
boot.ports = "listed"
[[port]]
pci = "0000:03:00.0"
[[interface]]
match.name = "ib2"
mode = "datagram"
mtu = 2044
EOF
with_mtu() { # NAME VERB...
	name=$1
	shift
	ibprov --config /run/mtu.toml "$@" >"$OUT/$name" 2>&1
	echo "$name: $?"
}
systemctl reset-failed
nmcli connection down fabric2
sed -i -e 's/=connected/=datagram/' -e 's/mtu=65520/mtu=1500/' $profile
nmcli connection reload
with_mtu mtu.set iface ib2 --settings-only
with_mtu mtu.set.status status
nmcli connection up fabric2
echo "mtu: $(shown ib2)"
with_mtu mtu.written.status status
with_mtu mtu.written.boot boot
with_mtu mtu.again iface ib2
with_mtu mtu.again.boot boot
with_mtu mtu.again.status status
true
