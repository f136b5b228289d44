set -u
. /usr/lib/bed/vf.sh
pf=0001:01:00.0
netdev() { ls "$pci/$pf/virtfn$1/net"; }
admin() { # what the PF administers: VF, GUIDs, link state
	ip link show "$(ls "$pci/$pf/net")" | sed -n 's/^ *vf \([0-9]*\) .*\(NODE_GUID.*\)/\1 \2/p'
}
udevadm settle
cp /run/ibprov/boot.json "$OUT/first.json"
facts "$pf" >"$OUT/fresh.facts"
counters >"$OUT/counters.fresh"

phase "uses"
# 0 an address, 1 a container, 2 a virtual machine, 3 vfio-pci and nobody, 4 a
# link-local address only, 5 a route, 6 a kernel client with a queue pair, 7 nothing,
# 8 a process with a connected queue pair, 9 a P_Key child with an address, 10 a P_Key child in
# a container, 11 a process with a queue pair that an ended thread has connected.
# Of each device ib_srp has a PD, the driver of the device has a queue pair, and the
# connection manager an identifier that listens at no address.
modprobe ib_srp
ip link set "$(netdev 0)" up
ip addr add 10.9.0.1/24 dev "$(netdev 0)"
one=$(netdev 1)
ip netns add container
ip link set "$one" netns container
group=$(basename "$(readlink "$pci/$pf/virtfn2/iommu_group")")
exec 9<>"/dev/vfio/$group" || echo "cannot open /dev/vfio/$group"
ip link set "$(netdev 4)" up
ip addr add fe80::4/64 dev "$(netdev 4)"
ip link set "$(netdev 5)" up
ip route add 10.10.0.0/16 dev "$(netdev 5)"
modprobe ibsim_user dev="$(ls "$pci/$pf/virtfn6/infiniband")"
mkfifo /run/connected
/usr/lib/bed/verbs-user /dev/infiniband/"$(ls "$pci/$pf/virtfn8/infiniband_verbs")" >/run/connected &
process=$!
read -r said </run/connected && echo "verbs-user: $said"
/usr/lib/bed/verbs-user /dev/infiniband/"$(ls "$pci/$pf/virtfn11/infiniband_verbs")" thread >/run/connected &
threaded=$!
read -r said </run/connected && echo "verbs-user with a thread: $said"
ip link add link "$(netdev 9)" name child9 type ipoib pkey 0x8009
ip addr add 10.11.0.1/24 dev child9
ip link add link "$(netdev 10)" name child10 type ipoib pkey 0x800a
ip link set child10 netns container
rdma resource show qp >"$OUT/used.resources"

rdma=$(ls "$pci/$pf/virtfn7/infiniband")
rdma resource show qp | grep "^link $rdma/" >"$OUT/idle.resources"
rdma resource show pd dev "$rdma" >>"$OUT/idle.resources" 2>&1
rdma resource show cm_id dev "$rdma" >>"$OUT/idle.resources" 2>&1

phase "who holds the adapter"
ibprov holders --format json >"$OUT/holders.json" 2>"$OUT/holders.log"
echo "holders: $?"
ibprov holders "$(ls "$pci/$pf/virtfn7/infiniband")" >"$OUT/holders.idle" 2>&1
echo "holders of an idle VF: $?"

phase "as planned, one in a container"
apply away

phase "other GUIDs for all"
admin >"$OUT/admin.before"
facts "$pf" >"$OUT/facts.before"
counters >"$OUT/counters.before"
sed 's/02:00:00:70/02:00:00:71/' /etc/ibprov/ibprov.toml >/run/other.toml
apply other --config /run/other.toml
admin >"$OUT/admin.after"
facts "$pf" >"$OUT/facts.after"
counters >"$OUT/counters.after"

phase "another number"
sed -i 's/vfs = 12/vfs = 4/' /run/other.toml
apply fewer --config /run/other.toml
facts "$pf" >"$OUT/fewer.facts"

phase "nobody uses them any more"
# A new number of VFs is an event of the PF, for which udev's instance would put
# the plan of /etc back.
systemctl mask --runtime --quiet "ibprov-pf@.service"
ip addr flush dev "$(netdev 0)"
# Its old name may have gone to a VF that was bound anew meanwhile.
ip -n container link set "$one" netns 1 name back0
ip route del 10.10.0.0/16
modprobe -r ibsim_user
kill "$process" "$threaded"
wait "$process" "$threaded"
ip link del child9
ip -n container link del child10
# The unit of the boot may not look into other processes.
cp /run/other.toml /etc/ibprov/ibprov.toml
systemctl restart ibprov.service
echo "restarted beside a virtual machine: $(systemctl show -p ExecMainStatus --value ibprov.service)"
cp /run/ibprov/boot.json "$OUT/restarted.json"
facts "$pf" >"$OUT/restarted.facts"
exec 9>&-
apply free --config /run/other.toml
facts "$pf" >"$OUT/free.facts"
systemctl restart ibprov.service
echo "restarted without one: $(systemctl show -p ExecMainStatus --value ibprov.service)"
phase "nothing holds the adapter"
modprobe -r ib_srp
ibprov holders >"$OUT/holders.free" 2>&1
echo "holders at the end: $?"

phase "a VF of a CNI plugin"
printf '\n[[pf.vf]]\nindex = 1\nowner = "cni"\n' >>/run/other.toml
apply given --config /run/other.toml
# As ib-sriov-cni: the GUID of a pod, a new probe, and the netdev to the pod.
ip netns add pod
own=$(ls "$pci/$pf/net")
vf1=$(vf "$pf" 1)
ip link set "$own" vf 1 node_guid 02:00:00:99:00:00:00:01
ip link set "$own" vf 1 port_guid 02:00:00:99:00:01:00:01
echo "$vf1" >/sys/bus/pci/drivers/mlx5_core/unbind
echo "$vf1" >/sys/bus/pci/drivers/mlx5_core/bind
has_netdev() { ls "$pci/$vf1"/net/* >/dev/null 2>&1; }
within 30 has_netdev
udevadm settle
# A plugin is quicker than udev, of which systemd hears that the netdev is gone. The instance
# begins after that, and the second time it has begun before.
name=$(netdev 1)
instance=$(systemd-escape --path --template=ibprov-iface@.service "$(cd -P "$pci/$vf1/net/$name" && pwd)")
state() { systemctl is-active "$instance"; }
has_begun() { [ "$(state)" = active ]; }
within 30 has_begun
udevadm control --stop-exec-queue
ip link set "$name" netns pod
systemctl restart "$instance"
echo "begins without a netdev: $(state)"
ip -n pod link set "$name" netns 1
lock=/run/ibprov/lock/netdev-$(cat "/sys/class/net/$name/ifindex")
exec 8>>"$lock"
flock 8
systemctl restart --no-block "$instance"
waits() { # for the lock, which it has looked at
	pid=$(systemctl show -p MainPID --value "$instance")
	[ "$pid" != 0 ] && [ -n "$(find "/proc/$pid/fd" -lname anon_inode:inotify)" ]
}
within 30 waits || echo "it does not wait"
ip link set "$name" netns pod
flock -u 8
exec 8>&-
has_ended() { [ "$(state)" != activating ]; }
within 30 has_ended
echo "loses its netdev: $(state)"
udevadm control --start-exec-queue
udevadm settle
admin >"$OUT/cni.before"
counters >"$OUT/counters.cni"
apply cni --config /run/other.toml
admin >"$OUT/cni.after"
counters >"$OUT/counters.cni.after"
ibprov status --config /run/other.toml --format json >"$OUT/cni.status.json"
echo "cni status: $?"
ibprov holders "$pf" --format json >"$OUT/cni.holders.json"
echo "cni holders: $?"
dmesg >"$OUT/dmesg"
phase end
