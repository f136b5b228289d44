# Ends when the late card has a netdev, or after a minute.
left=60
until [ "$left" = 0 ]; do
	set -- /sys/bus/pci/devices/0001:02:00.0/net/*
	[ ! -e "$1" ] || exit 0
	sleep 1
	left=$((left - 1))
done
