# As iface_ifupdown: killed, bound anew again and again, named with malice.
. /usr/lib/bed/iface.sh
card() { echo "0001:0$1:00.0"; }
appear() { /usr/lib/bed/appear "$1"; }
vanish() { card "$1" >/sys/bus/pci/drivers/mlx5_core/unbind; }

# Killed in the middle of its ifup, and started again.
touch /run/hold
appear 3
udevadm wait --timeout=20 /sys/class/net/ib2
ifup_runs() { systemctl list-units --no-legend 'ibprov-ifup-ib2-*' | grep -q activating; }
within 20 ifup_runs
systemctl kill --signal=KILL --kill-whom=main "$(unit ib2)"
within 20 is failed "$(unit ib2)"
echo "killed: $(systemctl show -p Result --value "$(unit ib2)") $(grep -c '"bring_up": "pending"' /run/ibprov/ports/"$(cat /sys/class/net/ib2/ifindex)".json)"
systemctl start --no-block "$(unit ib2)"
sleep 1
rm /run/hold
scene restarted ib2

# Down, with its address: `ifup --force` would do nothing, and report success.
ip link set ib2 down
systemctl restart "$(unit ib2)"
scene "set down" ib2

# Ten times in ten seconds.
for round in 1 2 3 4 5 6 7 8 9 10; do
	vanish 3
	appear 3
	sleep 0.5
done
scene ten ib2

# Bound anew while the stop for the former interface is under way.
dropin=/run/systemd/system/ibprov-iface@.service.d
mkdir -p $dropin
printf '[Service]\nTimeoutStopSec=60\nExecStop=/bin/sh -c "until [ -e /run/go ]; do sleep 0.1; done"\n' >$dropin/slow.conf
systemctl daemon-reload
ib2=$(unit ib2)
vanish 3
within 20 is deactivating "$ib2"
appear 3
udevadm wait --timeout=20 /sys/class/net/ib2
udevadm settle
echo "stopping: $(systemctl is-active "$(unit ib2)")"
touch /run/go
scene overtaken ib2
rm -r $dropin
systemctl daemon-reload

# Names that a shell or a careless template would trip over.
sed -i /allow-hotplug/d /etc/network/interfaces
appear 5
ended ib3
last=ib3
for name in ib-storage -x 'ib0;reboot' 'a\x2fb'; do
	echo 0 >"/sys/class/net/$last/umcast"
	ip link set dev "$last" name "$name"
	last=$name
	ended "$last"
	echo "hostile $name: $(systemctl is-active "$(unit "$last")") umcast=$(cat "/sys/class/net/$last/umcast")"
done
vanish 5
appear 5
ended ib3
echo "after hostile: $(systemctl is-active "$(unit ib3)")"

# Connected mode and back.
for mode in "connected 65520" "datagram 2044"; do
	set -- $mode
	printf '[[interface]]\nmatch.name = "ib3"\nmode = "%s"\nmtu = %s\n' "$1" "$2" >/run/mode.toml
	ibprov iface ib3 --settings-only --config /run/mode.toml
	echo "mode $1: $? $(cat /sys/class/net/ib3/mode /sys/class/net/ib3/mtu | tr '\n' ' ')"
done

# A name by port GUID.
appear 4
ended fabric0
echo "named: $(systemctl is-active "$(unit fabric0)") $(cat /sys/class/net/fabric0/address)"

# As one that was made before ibprov: down, and with the kernel's name.
index=$(cat /sys/class/net/fabric0/ifindex)
ip link set fabric0 down
ip link set fabric0 name early9
ended fabric0
echo "named late: $(cat /sys/class/net/fabric0/ifindex) of $index"
# One that is up keeps its name, and is not as wanted.
ip link set fabric0 down
systemctl mask --runtime --quiet "ibprov-iface@.service"
ip link set fabric0 name early9
ip link set early9 up
ibprov iface early9 --settings-only >"$OUT/early.log" 2>&1
echo "named never: $?"
ip link set early9 down
ibprov iface early9 --settings-only >/dev/null 2>&1
echo "named by hand: $? $(cat /sys/class/net/fabric0/ifindex) of $index"

systemctl list-units --all --no-legend --plain 'ibprov-iface@*' >"$OUT/instances"
true
