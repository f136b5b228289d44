set -u
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
set_knob() { echo "$1" >/sys/kernel/debug/ibcard/set; }
now() { read -r up _ </proc/uptime; echo "$up"; }
wait_online() { # NAME FLAG...: its text, JSON and exit code
	name=$1
	shift
	ibprov wait-online --format json "$@" >"$OUT/$name.json" 2>"$OUT/$name"
	echo "$name: $?"
}
# A wait in the background, until its status says TEXT: under a unit, for the status.
begin() { # TEXT FLAG...
	text=$1
	shift
	systemctl reset-failed late.service 2>/dev/null
	systemd-run --quiet --no-block --unit=late --service-type=oneshot --property=NotifyAccess=main \
		--property=StandardOutput=truncate:"$OUT/late.json" --property=StandardError=journal ibprov wait-online --format json --timeout 20s "$@"
	until_said "$text"
}
until_said() { # TEXT: or until the wait is over
	until systemctl show -p StatusText --value late.service | grep "$1" || ! is_waiting; do :; done >"$OUT/said"
}
is_waiting() { [ "$(systemctl show -p ActiveState --value late.service)" = activating ]; }
end() { # NAME: how it ended, and how long after what made it end
	while is_waiting; do :; done
	echo "$1: $(systemctl show -p Result --value late.service)"
	echo "$before $(now)" >"$OUT/$1.times"
	cp "$OUT/late.json" "$OUT/$1.json"
}

cp /run/ibprov/online.json "$OUT/boot-online.json"
systemctl show -p ActiveState,StatusText ibprov-wait-online.service >"$OUT/unit"
wait_online healthy --address ib0
# As udev and administrators give it.
ip link property add dev ib0 altname ibp7s0
wait_online altname ibp7s0
set_knob "0001:01:00.0/active_delay_ms=0"

set_knob "0001:01:00.0/link=down"
wait_online cable --timeout 3s
set_knob "0001:01:00.0/sm=0 0001:01:00.0/link=active"
wait_online no-sm --timeout 4s
wait_online no-sm-but-link --timeout 30s --state link
begin "no subnet manager" --address
before=$(now)
set_knob "0001:01:00.0/sm=1"
end sm-comes

# A link that goes down for a moment: the time begins anew.
begin "has to be online for longer" --stable 5s ib0
set_knob "0001:01:00.0/link=down"
until_said "no link"
before=$(now)
set_knob "0001:01:00.0/link=active"
end stable

# Nobody makes the settings that are asked for; then somebody does.
printf '[[interface]]\nmatch.name = "ibp7s0"\numcast = true\n' >/run/settings.toml
begin "configured" --config /run/settings.toml --state configured ib0
cp "$OUT/said" "$OUT/unset"
before=$(now)
ibprov iface ib0 --settings-only --config /run/settings.toml
end settings-come

# The port stays Active: only the netdev and its address are missing.
ip link set ib0 down
wait_online down --timeout 2s mlx5_0/1
ip addr flush dev ib0
ip link set ib0 up
ibprov wait-online --timeout 30s ib0 >/dev/null 2>&1 || echo "no carrier"
ip addr flush dev ib0 scope global
wait_online no-address --timeout 2s --address
begin "no address" --address
before=$(now)
ip addr add 192.168.77.9/24 dev ib0
end address-comes

# The firmware does not answer any more, and then again: who asks it cannot be killed
# meanwhile.
ip addr flush dev ib0 scope global
begin "no address" --address 0001:01:00.0
set_knob "0001:01:00.0/silent=1"
until_said "has not reported the state of the port for"
mv "$OUT/said" "$OUT/silent"
set_knob "0001:01:00.0/silent=0"
systemctl stop late.service

# A P_Key child, waited for by itself.
printf '[[interface]]\nmatch.name = "ib0"\n[[interface.partition]]\npkey = "0x8001"\n' >/run/child.toml
wait_online no-child --timeout 2s --config /run/child.toml ib0.8001
begin "ib0.8001" --config /run/child.toml ib0.8001
before=$(now)
ip link add link ib0 name ib0.8001 type ipoib pkey 0x8001
ip link set ib0.8001 up
end child-comes
ip link del ib0.8001

# A card that comes late, and status that follows it.
systemd-run --quiet --unit=watch --property=StandardOutput=truncate:"$OUT/watch" ibprov status --watch --format json
until [ -s "$OUT/watch" ]; do :; done
echo 0001:01:00.0 >/sys/bus/pci/drivers/mlx5_core/unbind
begin "no driver is bound" --state named
# The bind itself is the driver's time: when it ends, the netdev is there.
echo 0001:01:00.0 >/sys/bus/pci/drivers/mlx5_core/bind
before=$(now)
end late-card
until tail -n 1 "$OUT/watch" | grep -q '"netdev":"ib0"' || ! systemctl is-active --quiet watch; do sleep 0.1; done
systemctl stop watch.service

# A VF that was told to stay down.
cd /sys/bus/pci/devices
echo 1 >0001:01:00.0/sriov_numvfs
vf=$(basename "$(readlink 0001:01:00.0/virtfn0)")
ip link set ib0 vf 0 node_guid 02:00:00:00:00:12:00:00
ip link set ib0 vf 0 port_guid 02:00:00:00:00:12:01:00
ip link set ib0 vf 0 state disable
echo "$vf" >/sys/bus/pci/drivers/mlx5_core/unbind
echo "$vf" >/sys/bus/pci/drivers/mlx5_core/bind
udevadm settle
wait_online policy --timeout 3s "$vf"
begin "link state of this VF is set to down" "$vf"
before=$(now)
ip link set ib0 vf 0 state auto
ip link set "$(ls "$vf/net")" up
end policy-follow
cd /

wait_online hostile --timeout 1s 'ib0;reboot' '-x' 2>/dev/null
wait_online hostile --timeout 1s -- 'ib0;reboot' '-x'
wait_online usage 'ib 0'
cp /run/ibprov/online.json "$OUT/last.json"
