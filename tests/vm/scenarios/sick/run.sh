set -u
. /usr/lib/bed/vf.sh
. /usr/lib/bed/probe.sh
ibsim=/sys/kernel/debug/ibsim/mlx5_core
sick=0000:01:00.0

# run NAME COMMAND...: its output, and how it ended after how many milliseconds.
run() {
	name=$1
	shift
	start=$(uptime_ms)
	timeout 20 "$@" >"$OUT/$name" 2>"$OUT/$name.err"
	code=$?
	echo "$name: $code $(($(uptime_ms) - start))" >"$OUT/$name.end"
}
# ask KIND: what there is to know, all at once.
ask() {
	run "$1.text" ibprov status -v &
	run "$1.json" ibprov status --format json &
	run "$1.check" ibprov check --format json &
}
ended() { for name in $1; do [ -e "$OUT/$name.end" ] || return 1; done; }
# wait_for NAME...: one that sleeps uninterruptibly outlives its timeout, and where
# it sleeps is written down.
wait_for() {
	within 22 ended "$*" || for task in /proc/[0-9]*/task/*; do
		read -r comm <"$task/comm" || continue
		case $comm in ibprov | exe) echo "$kind $task" && cat "$task/stack" ;; esac
	done >>"$OUT/stacks" 2>/dev/null
}
asked() { wait_for "$kind.text" "$kind.json" "$kind.check"; }
phase() { kind=$1 && read -r up _ </proc/uptime && echo "$up $kind" >/dev/console; }
# never NAME: boot waits for a port that does not come, until its deadline.
never() { run "$1" ibprov --config /run/never.toml boot; }
printf '[boot]\ntimeout = "3s"\nports = "listed"\n[[port]]\npci = "0000:0f:00.0"\n' >/run/never.toml
# events NAME: udev tells of PCI functions, auxiliary devices and netdevs until NAME
# has ended.
events() {
	until ended "$1"; do
		for device in "$pci/$unbound" "$pci/$sick" /sys/bus/auxiliary/devices/* /sys/class/net/ib*; do
			echo change >"$device/uevent"
		done
		udevadm settle --timeout=1
	done
}

echo 1 >"$pci/$sick/sriov_numvfs"
echo 02:00:00:00:00:12:00:00 >"$pci/$sick/sriov/0/node"
echo 02:00:00:00:00:12:01:00 >"$pci/$sick/sriov/0/port"
echo Follow >"$pci/$sick/sriov/0/policy"
unbound=$(vf "$sick" 0)
echo "$unbound" >/sys/bus/pci/drivers/mlx5_core/unbind
udevadm settle
: >"$OUT/stacks"

phase healthy
ask healthy
asked
wait

phase port
knobs "$sick/port_query_ms=ever"
run port.health ibprov health --for npd
ask port
asked
knobs "$sick/port_query_ms=0"
wait

phase vf
knobs "$sick/vf_query_ms=ever"
ask vf
asked
knobs "$sick/vf_query_ms=0"
wait

phase lock
echo 1 >"$ibsim/$unbound/device_lock"
ask lock
asked
# Who reads the uevent file of which device: its name is the first thing in it.
probe asked 'uevent_show device=+0(+0(%di)):string'
boots() {
	never lock.boot &
	events lock.boot &
	wait_for lock.boot
	cat "$pci/$sick/uevent" >/dev/null
}
traced boots
cat $tracing/trace >"$OUT/asked"
echo 0 >"$ibsim/$unbound/device_lock"
wait

# Who looks asks what an interface is in use by, where it is to get another MTU.
phase rtnl
printf '[network]\ntimeout = "6s"\n[[interface]]\nmatch.name = "*"\nmtu = 1500\n' >/run/mtu.toml
mkdir -p /etc/ibprov/ibprov.d
cp /run/mtu.toml /etc/ibprov/ibprov.d/50-mtu.toml
: >/run/default.toml
echo 1 >"$ibsim/rtnl"
ask rtnl
never rtnl.boot &
run rtnl.online ibprov --config /run/default.toml wait-online --address --timeout 5s &
healthy=$(ls "$pci/0000:02:00.0/net")
outcome=/run/ibprov/ports/$(cat "/sys/class/net/$healthy/ifindex").json
run rtnl.iface ibprov --config /run/mtu.toml iface "$healthy" &
# Another interface by its unit.
other=$(ls "$pci/$sick/net")
device=$(readlink -f "/sys/class/net/$other")
unit=$(systemd-escape -p --template=ibprov-iface@.service "$device")
# is STATE UNIT
is() { [ "$(systemctl show -P ActiveState "$2")" = "$1" ]; }
# As at a boot: settings of later runs are deferred while the interface is in use.
rm "/run/ibprov/ports/$(cat "/sys/class/net/$other/ifindex").json"
systemctl restart --no-block "$unit"
asked
wait_for rtnl.boot rtnl.online rtnl.iface
cp "$outcome" "$OUT/rtnl.outcome"
within 20 is failed "$unit" || echo "$unit has not failed"
cp "/run/ibprov/ports/$(cat "/sys/class/net/$other/ifindex").json" "$OUT/held.outcome"
echo 0 >"$ibsim/rtnl"
wait
# P_Key children of the healthy adapter, which are to be set up while the lock is held.
phase children
starter=ibprov-children.service
mkdir -p /run/systemd/system/$starter.d
printf '[Service]\nExecStartPre=+/bin/sh -c "until [ -e /run/go ]; do sleep 0.1; done"\n' >/run/systemd/system/$starter.d/go.conf
systemctl daemon-reload
for n in 1 2 3 4; do
	ip link add link "$healthy" name "$healthy.800$n" type ipoib pkey 0x800$n
done
udevadm settle
is activating $starter || echo "$starter does not wait"
echo 1 >"$ibsim/rtnl"
: >/run/go
run children.started systemctl start $starter
run failed.json ibprov status --format json
for n in 1 2 3 4; do cat "/run/ibprov/ports/$(cat "/sys/class/net/$healthy.800$n/ifindex").json"; done >"$OUT/children.outcomes"
echo 0 >"$ibsim/rtnl"
for n in 1 2 3 4; do
	ibprov iface "$healthy.800$n" >/dev/null || echo "$healthy.800$n is not set up"
	cat "/sys/class/net/$healthy.800$n/mtu" >>"$OUT/children.mtu"
	ip link delete "$healthy.800$n"
done
rm /run/systemd/system/$starter.d/go.conf
rm /etc/ibprov/ibprov.d/50-mtu.toml
# What the kernel had been asked for holds the interface's lock until it is through.
run released.iface ibprov --config /run/mtu.toml iface "$healthy" --settings-only
cp "$outcome" "$OUT/released.outcome"

# As while the removal of the driver hangs: the link to the driver is gone, udev has
# nothing to do, and the device lock is held. Who opens driver_override of which function?
phase removal
echo 0 >"$pci/$sick/sriov_numvfs"
echo "$sick" >/sys/bus/pci/drivers/mlx5_core/unbind
udevadm settle
echo 1 >"$ibsim/$sick/device_lock"
probe opened 'do_sys_openat2 file=+0(%si):ustring' 'file ~ "*/driver_override"'
asks() {
	never removal.boot &
	run removal.online ibprov wait-online --timeout 5s &
	wait_for removal.boot removal.online
}
traced asks
grep ' opened: ' $tracing/trace >"$OUT/opened"
echo 0 >"$ibsim/$sick/device_lock"
wait

# The registration of a soft RoCE device waits for the lock.
phase rxe
modprobe rdma_rxe
ip link add eth9 type dummy
printf '[network]\ntimeout = "4s"\n[[rxe]]\nname = "rxe9"\nnetdev = "eth9"\n' >/run/rxe.toml
echo 1 >"$ibsim/rtnl"
run held.rxe ibprov --config /run/rxe.toml iface eth9 &
wait_for held.rxe
echo 0 >"$ibsim/rtnl"
wait
phase end
cat "$OUT"/*.end
