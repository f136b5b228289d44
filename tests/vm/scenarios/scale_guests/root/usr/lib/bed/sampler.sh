# Leaves in /run/most/SERVICE what it has had at most until now: KiB of memory, tasks,
# and in /run/most/bus how many connections the system bus has had.
mkdir -p /run/most
bus=0
while true; do
	for service in ibprov ibprov-guests; do
		group=/sys/fs/cgroup/system.slice/$service.service
		read -r memory <$group/memory.peak || continue
		read -r tasks <$group/pids.current || continue
		most=0
		[ ! -e /run/most/$service.tasks ] || read -r most </run/most/$service.tasks
		[ "$tasks" -le "$most" ] || echo "$tasks" >/run/most/$service.tasks
		echo $((memory / 1024)) >/run/most/$service.memory
	done 2>/dev/null
	now=$(awk '$8 == "/run/dbus/system_bus_socket" && $4 != "00010000" { n++ } END { print n + 0 }' /proc/net/unix)
	[ "$now" -le $bus ] || { bus=$now; echo $bus >/run/most/bus; }
	sleep 0.2
done
