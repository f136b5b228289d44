# A service is at its start when an interface comes that it has a job for.
set -u
. /usr/lib/bed/iface.sh
bus=/run/dbus/system_bus_socket
# Sockets on the bus's side, without the one that listens.
connections() { awk -v bus=$bus '$8 == bus && $4 != "00010000" { n++ } END { print n + 0 }' /proc/net/unix; }
# What an instance is, for interfaces without a device unit.
sed 's/--device=%f/%I/; s/%i\.device//; /^ConditionVirtualization/d; /^ExecStopPost/d; /^ExecCondition/d' \
	/usr/lib/systemd/system/ibprov-iface@.service >/run/systemd/system/wait@.service
mkdir -p /etc/ibprov
printf '[network]\ntimeout = "30min"\n' >/etc/ibprov/ibprov.toml
for name in ib500 ib501; do
	printf 'auto %s\niface %s inet manual\n\tup ip link set %s up\n' $name $name $name
done >/etc/network/interfaces
mkdir -p /run/systemd/system/networking.service.d
printf '[Service]\nExecStart=\nExecStart=/bin/sh -c "read go </run/go; ifup -a"\n' >/run/systemd/system/networking.service.d/late.conf
mkfifo /run/go
systemctl daemon-reload
/usr/lib/bed/taps 500 501
outcome() { sed -n 's/^  "'"$2"'": "\(.*\)",*$/\1/p' "/run/ibprov/ports/$(cat "/sys/class/net/$1/ifindex").json"; }
is_starting() { is activating networking.service; }
# NAME: its instance begins while networking.service starts, and has a job to wait for when
# its child has made one.
has_child() { systemctl list-jobs --no-legend | grep -q 'ibprov-wait-.*waiting'; }
comes() {
	within 20 is_starting || echo "networking.service does not start"
	systemctl start --no-block "wait@$1.service"
	within 60 has_child || echo "$1: nobody waits for the job"
}
goes() {
	echo go >/run/go
	within 30 is active "wait@$1.service" || echo "$1: $(systemctl is-active "wait@$1.service")"
}
start_anew() {
	systemctl stop networking.service
	systemctl start --no-block networking.service
}

start_anew
none=$(connections)
comes ib500
held=$(connections)
for second in 1 2 3; do
	sleep 1
	now=$(connections)
	[ "$now" -ge "$held" ] || held=$now
done
goes ib500
echo "$((held - none)) $(outcome ib500 bring_up)" >"$OUT/starting"

# The bus lets nobody in when an interface comes, and does so before the job ends.
start_anew
systemctl kill --signal=STOP dbus.service
comes ib501
systemctl kill --signal=CONT dbus.service
goes ib501
outcome ib501 asked_by >>"$OUT/silent"
