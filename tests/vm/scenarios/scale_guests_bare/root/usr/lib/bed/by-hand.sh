# What an operator's script does for VFs that guests are to have.
for word in $(cat /proc/cmdline); do
	case $word in bed.vfs=*) vfs=${word#*=} ;; esac
done
modprobe vfio-pci
modprobe ib_ipoib
for pf in 1 2; do
	cd /sys/bus/pci/devices/0001:0$pf:00.0
	until ls net/* >/dev/null 2>&1; do sleep 0.1; done
	netdev=$(echo net/*)
	netdev=${netdev##*/}
	echo 0 >sriov_drivers_autoprobe
	echo "$vfs" >sriov_numvfs
	vf=0
	while [ $vf -lt "$vfs" ]; do
		low=$(printf '%02x' $vf)
		ip link set "$netdev" vf $vf node_guid 02:00:00:70:0$((pf - 1)):00:00:$low
		ip link set "$netdev" vf $vf port_guid 02:00:00:70:0$((pf - 1)):01:00:$low
		echo vfio-pci >virtfn$vf/driver_override
		address=$(readlink virtfn$vf)
		echo "${address##*/}" >/sys/bus/pci/drivers/vfio-pci/bind
		vf=$((vf + 1))
	done
done
