set -u
systemctl show -p Result --value networking.service >"$OUT/networking"
ip -br addr >"$OUT/addr"

# 1. Nothing to do means nothing done.
modprobe dummy
udevadm settle
counters() { cat /sys/kernel/debug/ibcard/*/counters; }
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
links() { ip -o link show | sort; lsmod | sort; }
counters >"$OUT/counters.before"
links >"$OUT/links.before"
udevadm monitor >"$OUT/uevents" 2>&1 &
monitor=$!
ip monitor link >"$OUT/link-events" 2>&1 &
ipmonitor=$!
# Both must listen before it counts: provoke one event of each and wait for it.
ip link add heard type dummy
# The first may come before they listen, so it is provoked until it is heard.
while ! grep -q heard "$OUT/link-events" || ! grep -q heard "$OUT/uevents"; do
	echo change >/sys/class/net/heard/uevent
	ip link set heard up
	ip link set heard down
	udevadm settle
done
systemctl restart ibprov.service
echo "restart: $?"
ip link del heard
while ! grep -q 'remove.*heard' "$OUT/uevents"; do udevadm settle; done
kill "$monitor" "$ipmonitor"
counters >"$OUT/counters.after"
links >"$OUT/links.after"
cp /run/ibprov/boot.json "$OUT/again.json"

# 2. Killed at a step, by the step's own install command.
cat >/run/kill-ibprov <<'END'
#!/bin/sh
# kill-ibprov before|after MODULE
[ "$1" = after ] && /sbin/modprobe --ignore-install "$2"
pid=$(systemctl show -p MainPID --value ibprov.service)
[ "$pid" = 0 ] || kill -9 "$pid"
[ "$1" = before ] && /sbin/modprobe --ignore-install "$2"
exit 0
END
chmod +x /run/kill-ibprov
mkdir -p /run/modprobe.d
ifdown ib0
kill_at() { # before|after MODULE
	systemctl stop ibprov.service
	modprobe -r ib_ipoib
	modprobe -r ib_umad
	# mlx5_ib needs it, and is loaded again by boot: udev has no event for it.
	modprobe -r mlx5_ib
	modprobe -r ib_uverbs
	udevadm settle
	echo "install $2 /bin/sh /run/kill-ibprov $1 $2" >/run/modprobe.d/kill.conf
	systemctl start ibprov.service
	killed=$(systemctl show -p Result --value ibprov.service)
	rm /run/modprobe.d/kill.conf
	systemctl start ibprov.service
	then=$(systemctl show -p ActiveState --value ibprov.service)
	ibprov status --format json >/run/status.json
	echo "$1 $2: $killed, then $then, status $?," \
		"$(sed -n 's/^ *"code": "\(.*\)",*$/\1/p' /run/status.json | sort -u | xargs)"
}
for word in $(cat /proc/cmdline); do
	case $word in bed.kills=*) kills=$(echo "${word#*=}" | tr , ' ') ;; esac
done
for kill in $kills; do
	kill_at "${kill%:*}" "${kill#*:}"
done
# Whoever brings it up: the networking service is through, so ibprov does.
ibprov wait-online --address --timeout 60s >/dev/null
ip -br addr show ib0 >"$OUT/addr.after"
