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
ibprov status --format json >"$OUT/status.json"
ibprov status --gids >"$OUT/status"
echo 0 >0000:01:00.0/sriov_numvfs
echo 0 >0000:02:00.0/sriov_numvfs
ifdown --force ib0 || true
systemctl stop ibprov.service
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null || true
PF1=0000:01:00.0 PF2=0000:02:00.0 sh /usr/lib/bed/hca-selftest.sh >"$OUT/selftest" 2>&1 || echo "self-test: $?"
