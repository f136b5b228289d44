systemctl show -p Result --value networking.service >"$OUT/networking"
ip -br addr >"$OUT/addr.before"
udevadm wait --timeout=180 /sys/class/net/ib0
cut -d' ' -f1 /proc/uptime >"$OUT/appeared"
udevadm settle
unit=$(systemd-escape -p --template=ibprov-iface@.service "$(readlink -f /sys/class/net/ib0)")
until=$(($(cut -d. -f1 /proc/uptime) + 40))
while [ "$(cut -d. -f1 /proc/uptime)" -lt $until ]; do
	case $(systemctl is-active "$unit") in active | failed) break ;; esac
	sleep 0.2
done
systemctl is-active "$unit" >"$OUT/instance"
ip -br addr >"$OUT/addr"
ip -br link >"$OUT/link"
true
