set -u
. /usr/lib/bed/vf.sh
pf=0000:01:00.0
rule() { echo "$1" >/sys/kernel/debug/ibsim/mlx4_core/set; }
gids() { cat "$pci/$pf"/infiniband/*/iov/ports/1/gids/[1-4]; }
udevadm settle
cp /run/ibprov/boot.json "$OUT/booted.json"
phase fresh
facts "$pf" >"$OUT/fresh.facts"
gids >"$OUT/fresh.gids"
counters >"$OUT/counters.before"
apply again
counters >"$OUT/counters.after"

phase "another GUID; none from the subnet manager"
sed 's/02:00:00:70/02:00:00:71/' /etc/ibprov/ibprov.toml >/run/other.toml
apply other --config /run/other.toml
facts "$pf" >"$OUT/other.facts"
gids >"$OUT/other.gids"
rule "pf/guid_write=drop"
printf '[boot]\nadapter-timeout = "5s"\n\n' >/run/refused.toml
sed 's/02:00:00:70/02:00:00:72/' /etc/ibprov/ibprov.toml >>/run/refused.toml
apply refused --config /run/refused.toml
rule "pf/guid_write=ok"

phase "a number, a driver that it cannot have"
sed 's/vfs = 4/vfs = 2/; /pf.vf/Q' /etc/ibprov/ibprov.toml >/run/number.toml
apply number --config /run/number.toml
sed 's/02:00:00:70/02:00:00:71/; /pf.vf/Q' /etc/ibprov/ibprov.toml >/run/driver.toml
apply driver --config /run/driver.toml

phase "the port gets another type while it is in use"
typed() { # NAME COMMAND...
	name=$1
	shift
	"$@" >"$OUT/type.$name" 2>&1
	echo "type $name: $? $(cat "$pci/$pf/mlx4_port1")"
}
cat >/etc/ibprov/ibprov.toml <<EOF
[[port]]
pci = "$pf"
type = "eth"
EOF
netdev=$(ls "$pci/$pf/net")
ip link set "$netdev" up
ip addr add 10.4.0.1/24 dev "$netdev"
typed restart systemctl restart ibprov.service
echo "type unit: $(systemctl show -p ActiveState -p ExecMainStatus --value ibprov.service | sort | tr '\n' ' ')"
cp /run/ibprov/boot.json "$OUT/type.json"
typed status ibprov status
typed dry-run ibprov boot --dry-run
echo "type netdev: $(ip -o -4 addr show dev "$netdev" | awk '{ print $4 }')"
typed force ibprov boot --force
phase end
