for unit in ibprov.service openibd.service site-daemon.service hpc.mount; do
	echo "$unit $(systemctl show -p ActiveState --value "$unit")"
done
