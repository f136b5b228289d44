set -eu
. /usr/lib/bed/vf.sh
udevadm settle
for pf in 0001:01:00.0 0001:02:00.0; do
	facts $pf
	for vf in 0 1 2 3; do
		dir=$pci/$pf/virtfn$vf
		echo "$vf $(ls "$dir/infiniband") $(ls "$dir/net")"
	done
	cat $pci/$pf/infiniband/*/node_guid
	ls $pci/$pf/infiniband $pci/$pf/net
done
ip -br addr show ib0 | tr -s ' '
systemctl show -p ActiveState,Result,ExecMainStatus,StatusText ibprov.service |
	sed 's/ after [0-9.]* [mu]*s//'
systemctl list-units --failed --no-legend --plain
ibprov status >/dev/null && echo "status $?"
ls -A /run/ibprov /run/ibprov/pf
