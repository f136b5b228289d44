# Leaves in /run/most what services have had at most until now, a file for each: SERVICE.tasks;
# SERVICE.anon, KiB of memory of its own; SERVICE.memory, KiB of all that is charged to it, as
# what the kernel keeps of files in sysfs; and bus, how many connections the system bus has had.
mkdir -p /run/most
more() { # NAME NUMBER
	most=0
	[ ! -e "/run/most/$1" ] || read -r most <"/run/most/$1"
	[ "$2" -le "$most" ] || echo "$2" >"/run/most/$1"
}
while true; do
	for service in ibprov ibprov-guests; do
		group=/sys/fs/cgroup/system.slice/$service.service
		read -r memory <$group/memory.peak || continue
		read -r tasks <$group/pids.current || continue
		read -r _ anon <$group/memory.stat || continue
		more $service.memory $((memory / 1024))
		more $service.anon $((anon / 1024))
		more $service.tasks "$tasks"
	done 2>/dev/null
	more bus "$(awk '$8 == "/run/dbus/system_bus_socket" && $4 != "00010000" { n++ } END { print n + 0 }' /proc/net/unix)"
	sleep 0.2
done
