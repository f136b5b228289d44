. /usr/lib/bed/iface.sh
. /usr/lib/bed/vf.sh
ended ib0
mode() { rdma system show | sed -n 's/.*netns \([a-z]*\).*/\1/p'; }
told() { # NAME: what a restarted boot and status say
	systemctl restart ibprov.service
	cp /run/ibprov/boot.json "$OUT/$1.boot.json"
	ibprov status --format json >"$OUT/$1.json"
	echo "$1 status: $?"
	echo "$1: $(mode)"
}
echo "booted: $(mode)"
cp /run/ibprov/boot.json "$OUT/booted.boot.json"
ibprov status >"$OUT/booted.status" 2>&1
echo "booted status: $?"

# As every unit with a network namespace of its own.
systemd-run --unit=hold --property=PrivateNetwork=yes sleep 600
own() { # The unit has its namespace before it has its program.
	pid=$(systemctl show --value --property=MainPID hold.service)
	[ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}
within 30 own
echo '[rdma]
netns = "shared"' >/etc/ibprov/ibprov.toml
told held

# The kernel takes a namespace down after its last process has ended.
systemctl stop hold.service
is_shared() {
	systemctl restart ibprov.service
	[ "$(mode)" = shared ]
}
within 60 is_shared
told free
true
