# Leaves in /run/most what services have had at most until now, a file for each: SERVICE.tasks;
# SERVICE.anon, KiB of memory of its own; SERVICE.memory, KiB of all that is charged to it, as
# what the kernel keeps of files in sysfs; and bus, how many connections the system bus has had.
# `interfaces` are all instances of ibprov-iface@ together. And in /run/used-before what others
# had used when the first of these services began (used.sh).
. /usr/lib/bed/used.sh
mkdir -p /run/most
slice=/sys/fs/cgroup/system.slice
more() { # NAME NUMBER
	most=0
	[ ! -e "/run/most/$1" ] || read -r most <"/run/most/$1"
	[ "$2" -le "$most" ] || echo "$2" >"/run/most/$1"
}
while true; do
	for one in ibprov:ibprov.service ibprov-guests:ibprov-guests.service \
		'interfaces:system-ibprov\x2diface.slice' by-hand:by-hand.service; do
		name=${one%%:*} group=$slice/${one#*:}
		[ -d "$group" ] || continue
		[ -e /run/used-before ] || used >/run/used-before
		read -r memory <$group/memory.peak || continue
		read -r tasks <$group/pids.current || continue
		read -r _ anon <$group/memory.stat || continue
		more $name.memory $((memory / 1024))
		more $name.anon $((anon / 1024))
		more $name.tasks "$tasks"
	done 2>/dev/null
	more bus "$(awk '$8 == "/run/dbus/system_bus_socket" && $4 != "00010000" { n++ } END { print n + 0 }' /proc/net/unix)"
	sleep 0.2
done
