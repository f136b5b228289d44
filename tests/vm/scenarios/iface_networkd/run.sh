# Each line of the output is a scene: name, the instance's state, the interface.
now() { cut -d. -f1 /proc/uptime; }
unit() { systemd-escape -p --template=ibprov-iface@.service "$(readlink -f "/sys/class/net/$1")"; }
ended() {
	udevadm wait --timeout=20 "/sys/class/net/$1"
	udevadm settle
	until=$(($(now) + 40))
	while [ "$(now)" -lt $until ]; do
		case $(systemctl is-active "$(unit "$1")") in active | failed) return ;; esac
		sleep 0.1
	done
}
scene() { # NAME INTERFACE
	ended "$2"
	set -- "$1" "$2" "$(systemctl is-active "$(unit "$2")")" "$(cat "/sys/class/net/$2/umcast")"
	echo "$1: $3 umcast=$4 $(ip -o -4 addr show dev "$2" | awk '{ print $4 }')"
	cp /run/ibprov/ports/"$(cat "/sys/class/net/$2/ifindex")".json "$OUT/$1.json"
}
scene before ib0
scene meanwhile ib1
/usr/lib/bed/appear 3
scene late ib2
echo 0000:03:00.0 >/sys/bus/pci/drivers/mlx5_core/unbind
/usr/lib/bed/appear 3
scene rebound ib2
/usr/lib/bed/appear 4
scene missed ib3
ibprov iface ib0 --dry-run >"$OUT/dry-run"
ibprov iface ib0 --dry-run --no-bus >"$OUT/dry-run.no-bus"
ibprov iface ib3 --dry-run >"$OUT/dry-run.missed"
networkctl --no-pager list >"$OUT/networkctl"
true
