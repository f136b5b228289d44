# To be sourced after vf.sh: what VFs are called, and how they lose their drivers.
# names PF: a line for each VF: its index, RDMA device and netdev.
names() {
	for vf in 0 1 2 3; do
		dir=$(readlink -f "$pci/$1/virtfn$vf")
		echo "$vf" $(ls "$dir/infiniband") $(ls "$dir/net")
	done
}
# free PF: take all its VFs from their drivers.
free() {
	for vf in 0 1 2 3; do
		basename "$(readlink -f "$pci/$1/virtfn$vf")" >/sys/bus/pci/drivers/mlx5_core/unbind
	done
}
