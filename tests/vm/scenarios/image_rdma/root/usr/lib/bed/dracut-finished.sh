for device in /sys/class/infiniband/*; do
	[ -e "$device" ] && return 0
done
return 1
