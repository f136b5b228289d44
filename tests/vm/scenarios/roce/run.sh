set -u
. /usr/lib/bed/iface.sh
rail=0000:02:00.0
# as NAME COMMAND...: a line with its exit code, and a file with what it said.
as() {
	name=$1
	shift
	"$@" >"$OUT/$name" 2>"$OUT/$name.stderr"
	echo "$name: $?"
}
online() { ibprov wait-online --format json --timeout "$1" $rail; }
index() { ibprov gid --port mlx5_1/1 --type rocev2 --address 10.0.0.7; }
cp /run/ibprov/boot.json "$OUT/boot"
echo "result: $(systemctl show -p Result --value ibprov.service ibprov-wait-online.service | xargs)"
as online online 30s
as status ibprov status --gids
as status.json ibprov status --format json
as index index
entry=/sys/class/infiniband/mlx5_1/ports/1
echo "entry: $(cat "$entry/gid_attrs/types/$(cat "$OUT/index")") $(cat "$entry/gids/$(cat "$OUT/index")")"

# The network service takes the address away, and gives it again.
ip addr flush dev eth0 scope global
as no-address online 2s
as no-index index
ip addr add 10.0.0.7/24 dev eth0
as address-again online 30s

# The cable.
echo "$rail/link=down" >/sys/kernel/debug/ibsim/mlx5_core/set
as no-cable online 2s
as status-no-cable ibprov status --format json
as status-text ibprov status
echo "$rail/link=active" >/sys/kernel/debug/ibsim/mlx5_core/set
as cable-again online 30s

# The driver goes and comes: another netdev, that has no address yet.
echo $rail >/sys/bus/pci/drivers/mlx5_core/unbind
as unbound online 1s
echo $rail >/sys/bus/pci/drivers/mlx5_core/bind
named() { [ -e /sys/class/net/eth0 ]; }
within 30 named
ip link set eth0 up
ip addr replace 10.0.0.7/24 dev eth0
as bound-again online 30s
true
