set -u
names() { for pci in 0001:01:00.0 0001:02:00.0; do echo "$pci $(ls /sys/bus/pci/devices/$pci/infiniband)"; done; }
cp /run/ibprov/boot.json "$OUT/booted.json"
cp /run/waiting /run/loop /run/gated "$OUT"
cp /run/ibprov/online.json "$OUT/online.json"
names >"$OUT/names"
cp /run/udev/rules.d/61-ibprov-rdma.rules "$OUT/rules"
# Where this is emulated, the node cannot always be judged in time.
health() { # PROGRAM CODE, for unknown
	code=$2
	for _ in 1 2 3 4 5 6 7 8; do
		[ "$code" = "$2" ] || break
		line=$(ibprov health --for "$1") && code=0 || code=$?
	done
	echo "$line"
	echo "health: $code"
}
health npd 2

# The driver is bound again: the rule names the device.
echo 0 >/sys/bus/pci/devices/0001:01:00.0/sriov_numvfs
health nagios 3
echo 0001:02:00.0 >/sys/bus/pci/drivers/mlx5_core/unbind
echo 0001:02:00.0 >/sys/bus/pci/drivers/mlx5_core/bind
udevadm settle
names >"$OUT/rebound"

# Another program has renamed it, and its name is given to another device.
rdma dev set rail0 name other0
ibprov status --format json >"$OUT/renamed.json"
systemctl restart ibprov.service
names >"$OUT/restarted"
rdma dev set rail0 name other0
rdma dev set rail1 name rail0
systemctl restart ibprov.service
echo "restart: $?"
names >"$OUT/taken"
cp /run/ibprov/boot.json "$OUT/taken.json"
true
