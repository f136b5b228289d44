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

# Settings that are edited while ib2 is in use.
edit() { # MTU
	cat >/etc/ibprov/ibprov.toml <<-EOF
		boot.ports = "listed"
		[[port]]
		pci = "0000:03:00.0"
		[[interface]]
		match.name = "ib2"
		mode = "connected"
		mtu = $1
	EOF
}
used() { # NAME COMMAND...
	name=$1
	shift
	"$@" >"$OUT/used.$name" 2>&1
	echo "used $name: $? $(cat /sys/class/net/ib2/mode /sys/class/net/ib2/mtu | tr '\n' ' ')"
}
if [ ! -e $profile ]; then
	systemctl reset-failed
	systemctl stop systemd-networkd.socket systemd-networkd.service
	edit 60000
	used restart systemctl restart ibprov.service
	echo "used unit: $(systemctl show -p ActiveState -p ExecMainStatus --value ibprov.service | sort | tr '\n' ' ')"
	cp /run/ibprov/boot.json "$OUT/used.json"
	used status ibprov status
	used iface ibprov iface ib2 --settings-only
	used iface.dry-run ibprov iface ib2 --dry-run
	used boot.dry-run ibprov boot --dry-run
	used online ibprov wait-online --timeout 30 ib2
	ip link add link ib2 name child2 type ipoib pkey 0x8009
	ip addr add 10.9.0.1/24 dev child2
	ip link set child2 up
	ip addr flush dev ib2
	used child ibprov iface ib2 --settings-only
	ip link del child2
	ip addr add 10.1.2.1/24 dev ib2
	modprobe ibsim_user at=10.1.2.1
	ip addr flush dev ib2
	used cm-id ibprov iface ib2 --settings-only
	modprobe -r ibsim_user
	used idle ibprov iface ib2 --settings-only
	ip addr add 10.1.2.1/24 dev ib2
	edit 50000
	used by-hand ibprov iface ib2 --settings-only
	used by-force ibprov iface ib2 --settings-only --force
	edit 40000
	used again ibprov boot
	used boot.by-force ibprov boot --force
	used end ibprov status
	exit 0
fi

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
with_mtu mtu.deferred iface ib2
with_mtu mtu.again iface ib2 --force
with_mtu mtu.again.boot boot
with_mtu mtu.again.status status
true
