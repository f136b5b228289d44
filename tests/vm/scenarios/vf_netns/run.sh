set -u
. /usr/lib/bed/vf.sh
pf=0001:01:00.0
mode() { rdma system show | sed -n 's/.*netns \([a-z]*\).*/\1/p'; }
udevadm settle
echo "booted: $(mode)"
cp /run/ibprov/boot.json "$OUT/booted.boot.json"
ibprov status >"$OUT/booted.status" 2>&1
echo "booted status: $?"
uname -r >"$OUT/release"
rdma system show >"$OUT/mode"
facts "$pf" >"$OUT/fresh"
parent=$(readlink -f "/sys/class/infiniband/$(ls "$pci/$pf/virtfn0/infiniband")/device")
echo "parent: ${parent##*/}"
ls "$pci/$pf/virtfn0" | grep '^mlx5_core\.' >"$OUT/halves"

phase "VF 0's RDMA device goes to a pod"
systemctl mask --runtime --quiet "ibprov-pf@.service"
ip netns add pod
device=$(ls "$pci/$pf/virtfn0/infiniband")
rdma dev set "$device" netns pod
udevadm settle
ip netns exec pod ls /sys/class/infiniband >"$OUT/in-pod"
facts "$pf" >"$OUT/before"
counters >"$OUT/counters.before"
sed 's/02:00:00:70/02:00:00:71/' /etc/ibprov/ibprov.toml >/run/other.toml
apply other --config /run/other.toml
counters >"$OUT/counters.after"
facts "$pf" >"$OUT/after"
ip netns exec pod ls /sys/class/infiniband >"$OUT/in-pod.after"

phase "the number, meanwhile"
sed 's/vfs = 3/vfs = 1/' /run/other.toml >/run/fewer.toml
apply fewer --config /run/fewer.toml
facts "$pf" >"$OUT/fewer"

phase "it comes back"
ip netns attach host 1
ip netns exec pod rdma dev set "$device" netns host
udevadm settle
apply free --config /run/other.toml
facts "$pf" >"$OUT/free"

phase "another mode, while a unit has a network namespace of its own"
told() { # NAME: what a restarted boot and status say
	systemctl restart ibprov.service
	cp /run/ibprov/boot.json "$OUT/$1.boot.json"
	ibprov status --format json >"$OUT/$1.json"
	echo "$1 status: $?"
	echo "$1: $(mode)"
}
ip netns delete host
ip netns delete pod
echo 0 >"$pci/$pf/sriov_numvfs"
udevadm settle
# As every unit with a network namespace of its own.
systemd-run --unit=hold --property=PrivateNetwork=yes sleep 600
own() { # The unit has its namespace before it has its program.
	pid=$(systemctl show --value --property=MainPID hold.service)
	[ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}
within 30 own
echo '[rdma]
netns = "shared"' >/etc/ibprov/ibprov.toml
told held

# The kernel takes a namespace down after its last process has ended.
systemctl stop hold.service
is_shared() {
	systemctl restart ibprov.service
	[ "$(mode)" = shared ]
}
within 60 is_shared
told released
dmesg >"$OUT/dmesg"
phase end
