set -eu
echo 127 >/sys/bus/pci/devices/0000:01:00.0/sriov_numvfs
ip link set ib0 vf 126 node_guid 02:00:00:00:00:34:00:7e
udevadm settle
ibprov status --format json >"$OUT/status.json"
systemctl restart ibprov.service
cp /run/ibprov/boot.json "$OUT/again.json"

# The plan, of VFs that were never bound. Its exit codes are for the test.
set +e
. /usr/lib/bed/vf.sh
pf=0000:01:00.0
echo 0 >$pci/$pf/sriov_numvfs
udevadm settle
knobs "$pf+vf/probe_delay_ms=100"
mkdir -p /etc/ibprov
printf '[[pf]]\npci = "%s"\nbind = "parallel"\nvfs = 127\npolicy = "up"\nvf-guid-template = "02:00:00:70:00:{kind:8}:{vf:16}"\n' $pf >/etc/ibprov/ibprov.toml
for run in applied planned; do
	begin=$(uptime_ms)
	apply $run $pf
	echo "$run took $(($(uptime_ms) - begin)) ms"
done
facts $pf >"$OUT/facts"
