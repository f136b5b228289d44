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

# P_Key children, of a short and of a long name.
for child in ib0.8001 ib0.800a; do child_ended $child; done
appear 5
ended ib4
old=$(unit ib4)
ip link set ib4 name ibp129s0f0np1
ended ibp129s0f0np1
echo "renamed: $(systemctl is-active "$old") $(systemctl is-active "$(unit ibp129s0f0np1)")"
for child in ibp129s0f0.8001 ibp129s0f0.800a; do child_ended $child; done
for child in ib0.8001 ib0.800a ibp129s0f0.8001 ibp129s0f0.800a; do
	echo "child $child: $(is_set $child) $(ip -d link show $child | grep -o 'pkey .*umcast  *[0-9]*')"
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
	child_ended $name
	echo "child named $name: $(is_set $name)"
done
# remake: children are made anew, and the unit that sets them up begins.
starter=ibprov-children.service
remake() { # NAME...
	for child in "$@"; do
		ip link delete $child 2>/dev/null
		ip link add link ib0 name $child type ipoib pkey 0x${child#*.}
		udevadm settle
	done
}
drop_in() { # LINE: of its [Service] section
	mkdir -p /run/systemd/system/$starter.d
	printf '[Service]\n%s\n' "$1" >/run/systemd/system/$starter.d/bed.conf
	systemctl daemon-reload
}
# Somebody stops it, and kills it, while one child is at work, whose lock another has, and the
# other has been set up. It begins once both children are there.
within 20 is inactive $starter || echo "$starter does not end"
drop_in 'ExecStartPre=+/bin/sh -c "while [ -e /run/hold ]; do sleep 0.1; done"'
: >/run/hold
remake ib0.8001 ib0.800a
lock=/run/ibprov/lock/netdev-$(cat /sys/class/net/ib0.8001/ifindex)
flock --no-fork "$lock" sleep infinity &
holder=$!
is_held() { ! flock --nonblock "$lock" true; }
within 20 is_held || echo "$lock is not held"
rm /run/hold
child_ended ib0.800a
cp "$(outcome ib0.800a)" /run/once.json
systemctl stop $starter
echo "stopped: $(systemctl is-active $starter) job=$(systemctl show -P Job $starter)"
systemctl start --no-block $starter
main_pid() { systemctl show -P MainPID $starter; }
waits() { grep -q "^Threads:.*[2-9]" "/proc/$(main_pid)/status"; } 2>/dev/null
within 20 waits || echo "$starter does not begin"
systemctl kill --signal=KILL $starter
within 20 is failed $starter || echo "$starter is not killed"
echo "killed: $(systemctl is-active $starter) job=$(systemctl show -P Job $starter)"
kill $holder
echo "left: $(is_set ib0.8001)"
systemctl start $starter
echo "taken up: $(is_set ib0.8001) $(cmp "$(outcome ib0.800a)" /run/once.json && echo once)"
# A child comes after the last look, before the unit has ended.
drop_in 'ExecStartPost=+/bin/sh /usr/lib/bed/late-child'
ip link delete ib0.800a
within 20 is inactive $starter || echo "$starter does not end"
remake ib0.8001
child_ended ib0.800a
echo "child after the last look: $(is_set ib0.8001) $(is_set ib0.800a) $(cat /run/late-child)"
within 20 is inactive $starter || echo "$starter is started again and again"
cat /run/ups >"$OUT/ups"
ip -d addr >"$OUT/addr"
true
