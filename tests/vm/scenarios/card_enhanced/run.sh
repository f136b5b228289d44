set -u
. /usr/lib/bed/vf.sh
one=0001:01:00.0 two=0001:02:00.0 vf=0001:01:00.1
driver=/sys/bus/pci/drivers/mlx5_core
# What the card still has of the driver, and what it had when the driver told it to end.
held() { (cd "/sys/kernel/debug/ibcard/$1" && grep -v ' 0$' held left); }
traffic() { grep -sHE '^(tx|rx)_' /sys/kernel/debug/ibcard/*/counters | sed 's,^/sys/kernel/debug/,,; s,/counters:, ,'; }
carrier() { [ "$(ip -n "$1" -o link show "$2" | grep -c LOWER_UP)" = 1 ]; }
# to_ns NETNS NETDEV ADDRESS
to_ns() {
	ip link set "$2" netns "$1" && ip -n "$1" link set "$2" up &&
		ip -n "$1" addr add "$3/24" dev "$2" && within 20 carrier "$1" "$2" || echo "not up: $1 $2"
}
pinged() { ip netns exec a ping -q -c 3 -i 0.2 -W 5 -s "$2" "$1" >>"$OUT/pings"; }

# 1. As the boot has left it.
phase 1
udevadm settle
a=$(ls $pci/$one/net) b=$(ls $pci/$two/net)
ip -br addr >"$OUT/addr"
for name in "$a" "$b"; do
	echo "$(target /sys/class/net/$name/device/driver) $(cat /sys/class/net/$name/mode) $(cut -c1-2 /sys/class/net/$name/address)"
done >"$OUT/netdevs"
systemctl show -p Result --value networking.service >"$OUT/networking"
ibprov status --format json >"$OUT/status.json"

# 2. Settings: refused what the driver cannot do, done the rest.
phase 2
# Up, and so a member of the broadcast group, whose MTU holds.
ip link set "$b" up
joined() { [ "$(cat "/sys/class/net/$b/carrier")" = 1 ]; }
within 20 joined || echo "not up: $b"
settings() { # NAME TOML-LINES
	printf '[[interface]]\nmatch.pci = "%s"\n%b' "$two" "$2" >"/run/$1.toml"
	ibprov iface "$b" --settings-only --config "/run/$1.toml" >"$OUT/$1" 2>&1
	echo "$1: $? $(cat /sys/class/net/$b/mode /sys/class/net/$b/mtu | tr '\n' ' ')"
}
settings connected 'mode = "connected"\nmtu = 65520\n'
settings small 'mode = "datagram"\nmtu = 1500\n'
settings large 'mtu = 4092\n'
settings child 'mtu = 2044\npartition = [{ pkey = "0x8001" }]\n'
settings again 'mtu = 2044\npartition = [{ pkey = "0x8001" }]\n'
echo 0x8001 >"/sys/class/net/$a/create_child"
# Even past ibprov.
if (echo connected >"/sys/class/net/$a/mode") 2>/dev/null; then echo taken; else echo refused; fi >"$OUT/raw-mode"

# 3. Between functions, each in a network namespace, so over the card.
phase 3
echo 1 >$pci/$one/sriov_numvfs
udevadm settle
ip link set "$a" vf 0 node_guid 02:00:00:00:00:00:01:01
ip link set "$a" vf 0 port_guid 02:00:00:00:00:00:01:01
ip link set "$a" vf 0 state auto
echo $vf >$driver/unbind
echo $vf >$driver/bind
udevadm settle
c=$(ls $pci/$vf/net)
cut -c1-2 "/sys/class/net/$c/address" >"$OUT/plain"
for ns in a b c; do ip netns add $ns; done
ip addr flush dev "$a"
to_ns a "$a" 10.0.0.1
to_ns b "$b" 10.0.0.2
to_ns c "$c" 10.0.0.3
to_ns a "$a.8001" 10.1.0.1
to_ns b "$b.8001" 10.1.0.2
traffic >"$OUT/traffic.before"
pinged 10.0.0.2 56
pinged 10.0.0.2 5000
traffic >"$OUT/traffic.enhanced"
pinged 10.0.0.3 56
pinged 10.0.0.3 5000
traffic >"$OUT/traffic.mixed"
pinged 10.1.0.2 1900
# TCP, with segments that the card cuts and sums that it fills in.
head -c 2000000 /dev/urandom >/run/sent
receive='use IO::Socket::INET; my $l = IO::Socket::INET->new(Listen => 1, LocalPort => 9, ReuseAddr => 1) or die;
	open my $r, ">", "/run/ready"; close $r; my $c = $l->accept; print while <$c>;'
tcp() { # FROM TO ADDRESS
	rm -f /run/ready
	timeout 60 ip netns exec "$2" perl -e "$receive" >/run/received &
	within 20 test -e /run/ready
	timeout 60 ip netns exec "$1" perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 9) or die; print $s $_ while <STDIN>;' "$3" </run/sent
	wait $!
	cmp /run/sent /run/received && echo "tcp $1 $2: same"
}
tcp a b 10.0.0.2
tcp b a 10.0.0.1
tcp a c 10.0.0.3
tcp c a 10.0.0.1
for ns in a b c; do
	ip netns exec $ns awk '/^Tcp: [0-9]/ { print "wrong sums:", $15 }' /proc/net/snmp
done >"$OUT/sums"

# 4. Down and up, and bound anew with a child and an address.
phase 4
ip -n b link set "$b" down
ip -n b link set "$b" up
within 20 carrier b "$b" && pinged 10.0.0.2 56 || echo "not up again"
for n in 1 2 3; do
	before=$(uptime_ms)
	echo $two >$driver/unbind
	held $two >"$OUT/held.$n"
	echo $two >$driver/bind
	echo "rebind took: $(($(uptime_ms) - before))"
done
udevadm settle
b=$(ls $pci/$two/net)
to_ns b "$b" 10.0.0.2
# The QPN in its address is another now.
ip -n a neigh flush dev "$a"
pinged 10.0.0.2 56
dmesg >"$OUT/dmesg"
true
