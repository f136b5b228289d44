set -eu
cd /sys/bus/pci/devices
echo 2 >0000:01:00.0/sriov_numvfs
echo 02:00:00:00:00:12:00:01 >0000:01:00.0/sriov/1/node
echo 02:00:00:00:00:12:01:01 >0000:01:00.0/sriov/1/port
echo Follow >0000:01:00.0/sriov/1/policy
netdev=$(ls 0000:02:00.0/net)
echo 2 >0000:02:00.0/sriov_numvfs
ip link set "$netdev" vf 0 node_guid 02:00:00:00:00:34:00:00
ip link set "$netdev" vf 0 port_guid 02:00:00:00:00:34:01:00
ip link set "$netdev" vf 0 state enable
udevadm settle
# 1: VFs without a plan have port GUID 0.
ibprov status --format json >"$OUT/status.json" || echo "status: $?"
ibprov status -v --gids >"$OUT/status" || echo "status: $?"

# The plan of both PFs, on the way to nothing to do.
cat >/run/plan.toml <<END
host.number = 18
[[pf]]
pci = "0000:01:00.0"
vfs = 2
guid.template = "02:00:00:00:00:{host:8}:{kind:8}:{vf:8}"
[[pf]]
pci = "0000:02:00.0"
vfs = 2
link-state = "up"
guid.template = "02:00:00:00:00:34:{kind:8}:{vf:8}"
END
plan() {
	name=$1
	shift
	code=0
	ibprov --config /run/plan.toml plan "$@" >"$OUT/$name" 2>&1 || code=$?
	echo "exit $code" >>"$OUT/$name"
}
plan plan.half
echo 02:00:00:00:00:12:00:00 >0000:01:00.0/sriov/0/node
echo 02:00:00:00:00:12:01:00 >0000:01:00.0/sriov/0/port
echo Follow >0000:01:00.0/sriov/0/policy
ip link set "$netdev" vf 1 node_guid 02:00:00:00:00:34:00:01
ip link set "$netdev" vf 1 port_guid 02:00:00:00:00:34:01:01
ip link set "$netdev" vf 1 state enable
plan plan.unbound
for vf in 0000:01:00.1 0000:01:00.2 0000:02:00.1 0000:02:00.2; do
	echo "$vf" >/sys/bus/pci/drivers/mlx5_core/unbind
	echo "$vf" >/sys/bus/pci/drivers/mlx5_core/bind
done
udevadm settle
plan plan.done
plan plan.pin --pin
plan plan.again --pin
cp /etc/ibprov/guid-pins.toml "$OUT/guid-pins.toml"
sed -i s/18/19/ /run/plan.toml
plan plan.drift
rm /etc/ibprov/guid-pins.toml
plan plan.new

# The pin file of a machine of this name with other adapters: a clone's, which the unit may
# find out by what only root can read.
sed -e '/^node-guid/d; /^port-guids/d' "$OUT/guid-pins.toml" >/etc/ibprov/guid-pins.toml
plan plan.replaced
sed -i '/^machine/s/"[0-9a-f]*"/"0123456789abcdef"/g' /etc/ibprov/guid-pins.toml
plan plan.clone
cp /run/plan.toml /etc/ibprov/ibprov.toml
systemctl restart ibprov.service || echo "restart: $?"
cp /run/ibprov/boot.json "$OUT/clone.json"
