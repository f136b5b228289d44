# A service is at its start when an interface comes that it has a job for.
set -u
. /usr/lib/bed/iface.sh
bus=/run/dbus/system_bus_socket
# Sockets on the bus's side, without the one that listens.
connections() { awk -v bus=$bus '$8 == bus && $4 != "00010000" { n++ } END { print n + 0 }' /proc/net/unix; }
# What an instance is, for interfaces without a device unit.
sed 's/--device=%f/%I/; s/%i\.device//; /^ConditionVirtualization/d; /^ExecStopPost/d' \
	/usr/lib/systemd/system/ibprov-iface@.service >/run/systemd/system/wait@.service
mkdir -p /etc/ibprov
printf '[network]\ntimeout = "30min"\n' >/etc/ibprov/ibprov.toml
printf 'auto ib500\niface ib500 inet manual\n\tup ip link set ib500 up\n' >/etc/network/interfaces
mkdir -p /run/systemd/system/networking.service.d
printf '[Service]\nExecStart=\nExecStart=/bin/sh -c "read go </run/go; ifup -a"\n' >/run/systemd/system/networking.service.d/late.conf
mkfifo /run/go
systemctl daemon-reload
/usr/lib/bed/taps 500 500
systemctl stop networking.service
systemctl start --no-block networking.service
is_starting() { is activating networking.service; }
within 20 is_starting || echo "networking.service does not start"
none=$(connections)
systemctl start --no-block wait@ib500.service
# It has a job to wait for when its child has made one.
has_child() { systemctl list-jobs --no-legend | grep -q 'run-.*waiting'; }
within 30 has_child || echo "nobody waits for the job"
held=$(connections)
for second in 1 2 3; do
	sleep 1
	now=$(connections)
	[ "$now" -ge "$held" ] || held=$now
done
echo go >/run/go
within 30 is active wait@ib500.service || echo "ib500: $(systemctl is-active wait@ib500.service)"
echo "$((held - none)) $(sed -n 's/^  "bring_up": "\(.*\)"$/\1/p' "/run/ibprov/ports/$(cat /sys/class/net/ib500/ifindex).json")" >"$OUT/starting"
