# Each line of the output is a scene: name, the instance's state, the interface.
now() { cut -d. -f1 /proc/uptime; }
unit() { systemd-escape -p --template=ibprov-iface@.service "$(readlink -f "/sys/class/net/$1")"; }
# Wait until the instance of interface $2 has ended, at most 20 s; it is not
# started here.
scene() { # NAME INTERFACE
	udevadm wait --timeout=20 "/sys/class/net/$2"
	udevadm settle
	until=$(($(now) + 20))
	while [ "$(now)" -lt $until ]; do
		case $(systemctl is-active "$(unit "$2")") in active | failed) break ;; esac
		sleep 0.1
	done
	echo "$1: $(systemctl is-active "$(unit "$2")") umcast=$(cat "/sys/class/net/$2/umcast") $(ip -o -4 addr show dev "$2" | awk '{ print $4 }') ups=$(grep -cx -- "$2" /run/ups)"
}
systemctl show -p Result --value network.service
cat /run/brake.ib1 >"$OUT/brake"
scene before ib0
scene meanwhile ib1
/usr/lib/bed/appear 3
scene late ib2
/usr/lib/bed/appear 4
scene wicked ib3
/usr/lib/bed/appear 5
scene manual ib4
for name in ib0 ib2 ib3 ib4; do
	ibprov iface $name --dry-run >"$OUT/dry-run.$name" 2>&1
done
cp /run/ups "$OUT/ups"
true
