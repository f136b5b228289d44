. /usr/lib/bed/iface.sh
card() { echo "0001:0$1:00.0"; }
appear() { /usr/lib/bed/appear "$1"; }
vanish() { card "$1" >/sys/bus/pci/drivers/mlx5_core/unbind; }

systemctl show -p Result --value networking.service
cat /run/brake.ib1 >"$OUT/brake"
scene before ib0
scene meanwhile ib1

appear 3
scene late ib2
appear 4
scene hotplug ib3

# P_Key children, of a short and of a long name, and their own instances.
for child in ib0.8001 ib0.800a; do ended $child; done
appear 5
ended ib4
old=$(unit ib4)
ip link set ib4 name ibp129s0f0np1
ended ibp129s0f0np1
echo "renamed: $(systemctl is-active "$old") $(systemctl is-active "$(unit ibp129s0f0np1)")"
for child in ibp129s0f0.8001 ibp129s0f0.800a; do ended $child; done
for child in ib0.8001 ib0.800a ibp129s0f0.8001 ibp129s0f0.800a; do
	echo "child $child: $(systemctl is-active "$(unit $child)") $(ip -d link show $child | grep -o 'pkey .*umcast  *[0-9]*')"
done
echo "mtu: $(cat /sys/class/net/ib0/mtu)"

# Nothing to do the second time.
systemctl restart "$(unit ib0)"
ibprov iface ib0 --format json >"$OUT/again.json"
echo "again: $? ups=$(grep -cx ib0 /run/ups)"

# A card that is bound anew is another interface of the same name.
vanish 3
appear 3
scene rebound ib2
vanish 4
appear 4
scene hotplug-rebound ib3
echo 1 >/sys/bus/pci/devices/"$(card 5)"/sriov_numvfs
udevadm settle
vf=$(basename "$(readlink /sys/bus/pci/devices/"$(card 5)"/virtfn0)")
for round in 1 2; do
	name=$(ls /sys/bus/pci/devices/"$vf"/net)
	ended "$name"
	echo "vf $round: $(systemctl is-active "$(unit "$name")") umcast=$(cat /sys/class/net/"$name"/umcast)"
	echo "$vf" >/sys/bus/pci/drivers/mlx5_core/unbind
	echo "$vf" >/sys/bus/pci/drivers/mlx5_core/bind
	udevadm settle
done
echo 0 >/sys/bus/pci/devices/"$(card 5)"/sriov_numvfs

systemctl list-units --all --no-legend --plain 'ibprov-iface@*' >"$OUT/instances"
systemctl list-units --all --no-legend --plain 'ibprov-ifup-*' >"$OUT/ifups"
for stack in ib0 ib1 ib2 ib3; do ibprov iface $stack --dry-run; done >"$OUT/dry-run" 2>&1
ibprov iface ib2 --dry-run --no-bus >"$OUT/dry-run.no-bus" 2>&1
# On a busy machine the bus may not let us in within 250 ms.
for try in 1 2 3 4 5; do
	ibprov iface ib2 --dry-run >"$OUT/dry-run.bus" 2>&1
	! grep -q 'queried by: the system bus' "$OUT/dry-run.bus" || break
done
# A P_Key child that gets another name, and its first name again.
child=ib0.800a
for name in storage0 ib0.800a; do
	ip link set $child down
	ip link set $child name $name
	child=$name
	ended $name
	echo "child named $name: $(systemctl is-active "$(unit $name)")"
done
# remake: children are made anew, and the unit that starts their instances begins.
starter=ibprov-children.service
remake() { # NAME...
	for child in "$@"; do
		ip link delete $child 2>/dev/null
		ip link add link ib0 name $child type ipoib pkey 0x${child#*.}
		udevadm settle
	done
}
# has_instance CHILD STATE: the child need not be there.
has_instance() { is "$2" "$(systemd-escape -p --template=ibprov-iface@.service /sys/devices/virtual/net/$1)"; }
# Somebody stops it while one child's instance is at work and the other's is to come. It begins
# once both children are there.
drop_in=/run/systemd/system/ibprov-iface@.service.d
mkdir -p $drop_in /run/systemd/system/$starter.d
hold='[Service]\nExecStartPre=+/bin/sh -c "while [ -e /run/%s ]; do sleep 0.1; done"\n'
printf "$hold" hold >$drop_in/hold.conf
printf "$hold" hold-starter >/run/systemd/system/$starter.d/hold.conf
systemctl daemon-reload
# It waits 5 s for an instance, and this machine may have taken longer: once more then.
for try in 1 2 3 4 5; do
	for child in ib0.8001 ib0.800a; do
		ip link delete $child
		within 20 has_instance $child inactive || echo "the instance of $child does not stop"
	done
	within 20 is inactive $starter || echo "$starter does not end"
	touch /run/hold /run/hold-starter
	remake ib0.8001 ib0.800a
	within 20 is active "$(systemd-escape -p --suffix=device /sys/subsystem/net/devices/ib0.800a)"
	rm /run/hold-starter
	within 20 has_instance ib0.8001 activating || echo "no instance is held"
	systemctl stop $starter
	held_usec=$(systemctl show -p InactiveExitTimestampMonotonic --value "$(unit ib0.8001)")
	[ $(($(now) - held_usec / 1000000)) -ge 4 ] || break
done
echo "stopped: $(systemctl is-active $starter) job=$(systemctl show -P Job $starter)"
rm /run/hold
ended ib0.8001
echo "left: $(systemctl is-active $starter) $(systemctl is-active "$(unit ib0.800a)")"
systemctl start $starter
within 20 has_instance ib0.800a active
echo "taken up: $(systemctl is-active "$(unit ib0.800a)")"
rm $drop_in/hold.conf /run/systemd/system/$starter.d/hold.conf
# A child comes after the last look, before the unit has ended.
printf '[Service]\nExecStartPost=+/bin/sh /usr/lib/bed/late-child\n' >/run/systemd/system/$starter.d/late.conf
systemctl daemon-reload
ip link delete ib0.800a
within 20 is inactive $starter || echo "$starter does not end"
remake ib0.8001
within 20 has_instance ib0.800a active
echo "child after the last look: $(systemctl is-active "$(unit ib0.8001)") $(systemctl is-active "$(unit ib0.800a)") $(cat /run/late-child)"
within 20 is inactive $starter || echo "$starter is started again and again"
# The unit has only systemctl to ask, which cannot reach systemd for a while. Then systemd
# refuses to start the instance of one child.
systemctl=$(command -v systemctl)
cp "$systemctl" /usr/lib/bed/systemctl
printf '[Service]\nInaccessiblePaths=/run/systemd/units\nBindReadOnlyPaths=/usr/lib/bed/deaf-systemctl:%s\n' "$systemctl" >/run/systemd/system/$starter.d/late.conf
systemctl daemon-reload
: >/run/deaf
for child in ib0.8001 ib0.800a; do
	ip link delete $child
	# A child of the same name would have its instance started by the one that stops.
	within 20 has_instance $child inactive || echo "the instance of $child does not stop"
done
remake ib0.8001
asks_again() { [ "$(journalctl -q -b -u $starter -o cat | grep -c 'Connection refused: asking again')" -ge 3 ]; }
within 20 asks_again || echo "$starter does not ask again"
rm /run/deaf
within 20 has_instance ib0.8001 active
within 20 is inactive $starter || echo "$starter does not end"
echo "systemd reached at last: $(systemctl is-active "$(unit ib0.8001)")"
ln -s /dev/null "/run/systemd/system/$(systemd-escape -p --template=ibprov-iface@.service /sys/devices/virtual/net/ib0.800a)"
systemctl daemon-reload
remake ib0.8001 ib0.800a
within 20 has_instance ib0.8001 active
within 20 is inactive $starter || echo "$starter does not end"
echo "refused: $(systemctl is-active "$(unit ib0.8001)") $(journalctl -q -b -u $starter -o cat | grep -c 'not all of .* can be started: .*masked') $(systemctl show -P Result $starter)"
cat /run/ups >"$OUT/ups"
ip -d addr >"$OUT/addr"
true
