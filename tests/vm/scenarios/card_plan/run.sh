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
sed -i '0,/vfs = 16/s//vfs = 2/' /etc/ibprov/ibprov.toml
apply fewer "$pf"
udevadm settle
facts "$pf" >"$OUT/fewer"
sed -i '0,/vfs = 2/s//vfs = 3/' /etc/ibprov/ibprov.toml
apply more "$pf"
udevadm settle
facts "$pf" >"$OUT/more"

dmesg >"$OUT/dmesg"
true
