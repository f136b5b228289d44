set -u
. /usr/lib/bed/vf.sh
pf=0001:01:00.0
udevadm settle

# 1. As the boot has left it, and run again.
phase 1
for n in 1 2; do facts "0001:0$n:00.0" >"$OUT/fresh.$n"; done
counters >"$OUT/counters.fresh"
rdma resource show >"$OUT/idle.resources" 2>&1
ibprov status --format json >"$OUT/status.json"
listen
counters >"$OUT/counters.before"
apply again
udevadm settle
counters >"$OUT/counters.again"
deaf

# 2. One GUID is changed: one VF is bound anew.
phase 2
name=$(ls "$pci/$pf/net")
ip link set "$name" vf 3 port_guid 02:00:00:00:00:00:be:ef
counters >"$OUT/counters.one-before"
apply one "$pf"
counters >"$OUT/counters.one-after"
udevadm settle
facts "$pf" >"$OUT/one"

# 3. Another number of VFs.
phase 3
sed -i '0,/vfs = 9/s//vfs = 2/' /etc/ibprov/ibprov.toml
apply fewer "$pf"
udevadm settle
facts "$pf" >"$OUT/fewer"
sed -i '0,/vfs = 2/s//vfs = 3/' /etc/ibprov/ibprov.toml
apply more "$pf"
udevadm settle
facts "$pf" >"$OUT/more"

# 4. Firmware does not answer the PF when it asks for its VFs: the driver leaves them out of
# what it reports. Two have their driver, one has none. Then firmware answers again.
phase 4
knobs "$pf/fail.QUERY_HCA_VPORT_CONTEXT=0"
ip link show dev "$(ls "$pci/$pf/net")" >"$OUT/unread.link"
echo 0001:01:00.3 >/sys/bus/pci/drivers/mlx5_core/unbind
udevadm settle
counters >"$OUT/counters.unread-before"
ibprov plan --format json >"$OUT/unread.plan.json"
echo "unread plan: $?"
apply unread "$pf"
counters >"$OUT/counters.unread-after"
ibprov status --format json >"$OUT/unread.status.json"
knobs "$pf/fail.QUERY_HCA_VPORT_CONTEXT=9999"
udevadm settle
facts "$pf" >"$OUT/unread.facts"
counters >"$OUT/counters.read-before"
apply read "$pf"
counters >"$OUT/counters.read-after"

dmesg >"$OUT/dmesg"
true
