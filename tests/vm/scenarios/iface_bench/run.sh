# Each round binds the card anew. Leaves lines of microseconds after the device's
# unit was active:
#     ibprov main-began configured decided unit-active
#     bare unit-active
set -eu
. /usr/lib/bed/starts.sh
pf=0001:01:00.0
stamp() { systemctl show -p ActiveEnterTimestampMonotonic --value "$1"; }
round() { # UNIT
	unit=$(systemd-escape -p --template="$1@.service" "$(readlink -f /sys/class/net/ib0)")
	echo "$pf" >/sys/bus/pci/drivers/mlx5_core/unbind
	udevadm settle
	# What is done at the stop is not measured.
	until=$(($(cut -d. -f1 /proc/uptime) + 20))
	while systemctl is-active "$unit" | grep -Eq '^(active|deactivating)' && [ "$(cut -d. -f1 /proc/uptime)" -lt $until ]; do sleep 0.2; done
	echo "$pf" >/sys/bus/pci/drivers/mlx5_core/bind
	udevadm wait --timeout=20 /sys/class/net/ib0
	path=$(readlink -f /sys/class/net/ib0)
	until=$(($(cut -d. -f1 /proc/uptime) + 20))
	until [ "$(systemctl is-active "$unit")" = active ] || [ "$(cut -d. -f1 /proc/uptime)" -ge $until ]; do sleep 0.2; done
	[ "$(cat /sys/class/net/ib0/umcast)" = 1 ] || echo "$1: umcast is not set"
	device=$(stamp "$(systemd-escape -p --suffix=device "$path")")
	end=$(($(stamp "$unit") - device))
}
outcome() { # FIELD
	sed -n "s/^  \"$1\": \([0-9]*\),$/\1/p" "/run/ibprov/ports/$(cat /sys/class/net/ib0/ifindex).json"
}

# The times of one round and the next differ by half.
rounds=$(seq 15)
modprobe -a ib_umad ib_uverbs ib_ipoib
udevadm settle
# One round to fill the caches, which is not counted.
round ibprov-iface
for n in $rounds; do
	round ibprov-iface
	echo "ibprov $(($(outcome started_usec) - device)) $(($(outcome settled_usec) - device)) $(($(outcome decided_usec) - device)) $end" >>"$OUT/rounds"
done

started ibprov round ibprov-iface
costs

systemctl mask --runtime --quiet ibprov-iface@.service
mkdir -p /run/udev/rules.d
echo 'ACTION!="remove", SUBSYSTEM=="net", ATTR{type}=="32", TAG+="systemd", ENV{SYSTEMD_WANTS}+="bare@.service"' >/run/udev/rules.d/91-bare.rules
udevadm control --reload
round bare
for n in $rounds; do
	round bare
	echo "bare $end" >>"$OUT/rounds"
done
started bare round bare
