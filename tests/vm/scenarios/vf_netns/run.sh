set -u
. /usr/lib/bed/vf.sh
pf=0001:01:00.0
udevadm settle
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
dmesg >"$OUT/dmesg"
phase end
