set -u
. /usr/lib/bed/vf.sh
ofed=0000:01:00.0
mainline=0000:02:00.0
both() { facts "$ofed" >"$OUT/$1.ofed"; facts "$mainline" >"$OUT/$1.mainline"; }

# 1. As the boot has left it.
phase 1
udevadm settle
both fresh
counters >"$OUT/counters.fresh"
systemctl show -p Result --value ibprov.service

# 2. All as planned: nothing is touched.
phase 2
udevadm monitor >"$OUT/uevents" 2>&1 &
monitor=$!
ip monitor link >"$OUT/link-events" 2>&1 &
ipmonitor=$!
modprobe dummy
while ! grep -q heard "$OUT/link-events" || ! grep -q heard "$OUT/uevents"; do
	ip link add heard type dummy
	udevadm settle
	ip link del heard
	udevadm settle
done
counters >"$OUT/counters.before"
apply again
udevadm settle
counters >"$OUT/counters.after"
kill "$monitor" "$ipmonitor"
both again

# 3. One GUID is changed at each PF: one VF of each is bound anew.
phase 3
echo 02:00:00:00:00:00:de:ad >"$pci/$ofed/sriov/3/port"
ip link set "$(ls "$pci/$mainline/net")" vf 3 node_guid 02:00:00:00:00:00:be:ef
counters >"$OUT/counters.one-before"
apply one
counters >"$OUT/counters.one-after"
both one
