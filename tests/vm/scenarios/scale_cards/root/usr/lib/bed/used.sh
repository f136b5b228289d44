# What is used for ibprov by others, to be sourced.
cpu_of() { # GROUP: what it has used, microseconds; 0 if there is none
	used=0
	while read -r key value; do
		[ "$key" != usage_usec ] || used=$value
	done 2>/dev/null <"/sys/fs/cgroup/$1/cpu.stat"
	echo "$used"
}
# used: what PID 1, the bus and udev have used, microseconds, a line each.
used() { for group in init.scope system.slice/dbus.service system.slice/systemd-udevd.service; do cpu_of $group; done; }
