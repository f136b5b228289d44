#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Self-test of the simulated HCA, run inside the guest as root; prints TAP and
# exits 1 if any check failed.  Needs two emulated SR-IOV functions, iproute2,
# kmod, and nothing else using the HCAs.  Reloads the modules many times.
#
#   PF1=0000:01:00.0 PF2=0000:02:00.0 sh selftest.sh
PF1=${PF1:-0000:01:00.0}
PF2=${PF2:-0000:02:00.0}
PCI=/sys/bus/pci/devices
DRV=/sys/bus/pci/drivers/mlx5_core
DBG=/sys/kernel/debug/ibsim/mlx5_core

# A busybox shell would prefer its own, lesser ip and modprobe.
real() {
	for dir in /usr/sbin /sbin /usr/bin /bin; do
		[ -x "$dir/$1" ] && echo "$dir/$1" && return
	done
	echo "Bail out! $1 not found"
	exit 1
}
IP=$(real ip) || { echo "$IP"; exit 1; }
MODPROBE=$(real modprobe) || { echo "$MODPROBE"; exit 1; }

count=0
failed=0
ok() {	# NAME COMMAND...: the command must succeed
	name=$1
	shift
	count=$((count + 1))
	if "$@"; then
		echo "ok $count - $name"
	else
		failed=$((failed + 1))
		echo "not ok $count - $name"
		echo "# failed: $*"
	fi
}
is() {	# NAME GOT WANT
	ok "$1" test "$2" = "$3"
	[ "$2" = "$3" ] || echo "# got '$2', want '$3'"
}
# With the shell's own commands where it can be: under emulation each program
# takes 20 ms to start.
now_ms() { read -r up rest </proc/uptime && echo "${up%.*}${up#*.}0"; }
within() {	# SECONDS COMMAND...: until it succeeds
	end=$(($(now_ms) + $1 * 1000))
	shift
	until "$@"; do
		[ "$(now_ms)" -lt "$end" ] || return 1
		sleep 0.05
	done
}
never() { ! "$@"; }
errno_of() {	# VALUE FILE: the error text of the write, or "none"
	if msg=$( (env echo "$1" >"$2") 2>&1); then
		echo none
	else
		echo "${msg##*: }"
	fi
}
field() {	# FILE: its first line
	[ -r "$1" ] && read -r line 2>/dev/null <"$1" && echo "$line"
}
rdma() {
	for r in "$PCI/$1"/infiniband/*; do
		[ ! -e "$r" ] || echo "${r##*/}"
		return
	done
}
netdev() {	# BDF [PORT]
	for n in "$PCI/$1"/net/*; do
		[ -e "$n" ] && read -r type <"$n/type" && [ "$type" = 32 ] || continue
		read -r id <"$n/dev_id" && [ $((id)) = $((${2:-1} - 1)) ] || continue
		echo "${n##*/}"
	done
}
has_netdev() { [ -n "$(netdev "$@")" ]; }
has_rdma() { [ -n "$(rdma "$1")" ]; }
port() { field "$PCI/$1/infiniband/$(rdma "$1")/ports/${3:-1}/$2"; }
state_is() { [ "$(port "$1" state "${3:-1}")" = "$2" ]; }
node_guid() { field "$PCI/$1/infiniband/$(rdma "$1")/node_guid"; }
address() { field "$PCI/$1/net/$(netdev "$1")/address"; }
guid_in_address() {
	line=$(address "$1")
	echo "${line#*:*:*:*:*:*:*:*:*:*:*:*:}"
}
carrier() { [ "$(field "$PCI/$1/net/$(netdev "$1")/carrier")" = 1 ]; }
counter() {	# BDF NAME
	while read -r name value; do
		[ "$name" != "$2" ] || echo "$value"
	done <"$DBG/$1/counters"
}
vf() { (cd -P "$PCI/$1/virtfn$2" && echo "${PWD##*/}"); }
bound() { [ -e "$PCI/$1/driver" ]; }
knob() { echo "$1" >"$DBG/set"; }
loaded() { [ -d "/sys/module/$1" ]; }

part() {	# TITLE: for who wonders what takes its time
	read -r up rest </proc/uptime && echo "# $up s: $1"
}

unload() {
	# udev loads modules too, and one that it is just loading is in use.
	! command -v udevadm >/dev/null || udevadm settle
	"$MODPROBE" -r ib_ipoib && "$MODPROBE" -r mlx5_ib &&
		"$MODPROBE" -r mlx5_core
}
load() {	# RULES...: fresh modules with these rules
	unload || return 1
	"$MODPROBE" mlx5_core "$@" && "$MODPROBE" mlx5_ib &&
		"$MODPROBE" -a ib_umad ib_ipoib
}

[ -d /sys/kernel/debug/tracing ] || mount -t debugfs debugfs /sys/kernel/debug
loaded ibsim_pci || "$MODPROBE" ibsim_pci \
	"map=$PF1=15b3:101b:020700,$PF2=15b3:101b:020700"

part "a: ports, IPoIB, traffic, unloading"
is "identity" "$(field "$PCI/$PF1/vendor") $(field "$PCI/$PF1/device") $(field "$PCI/$PF1/class")" \
	"0x15b3 0x101b 0x020700"
ok "load" load
ok "PF 1 has a netdev" within 5 has_netdev "$PF1"
ok "PF 2 has a netdev" within 5 has_netdev "$PF2"
ok "PF 1 becomes Active" within 5 state_is "$PF1" "4: ACTIVE"
is "physical state" "$(port "$PF1" phys_state)" "5: LinkUp"
is "link layer" "$(port "$PF1" link_layer)" InfiniBand
ok "LID given" test "$(port "$PF1" lid)" != 0x0
is "SM LID" "$(port "$PF1" sm_lid)" 0x1
is "the address ends in GID 0" "$(guid_in_address "$PF1" | tr -d :)" \
	"$(port "$PF1" gids/0 | cut -d: -f5-8 | tr -d :)"
n1=$(netdev "$PF1")
n2=$(netdev "$PF2")
"$IP" netns add hcatest
"$IP" link set "$n2" netns hcatest
"$IP" link set "$n1" up
"$IP" addr add 192.0.2.1/24 dev "$n1"
"$IP" -n hcatest addr add 192.0.2.2/24 dev "$n2"
"$IP" -n hcatest link set "$n2" up
ok "carrier" within 5 carrier "$PF1"
ping_ok() { ping -c 1 -W 2 192.0.2.2 >/dev/null; }
ok "ping between two HCAs" within 10 ping_ok
big_ok() { ping -c 1 -W 2 -s 6000 192.0.2.2 >/dev/null; }
ok "ping with fragments" within 5 big_ok
knob "$PF2/link=down"
ok "no ping over a port that is down" never ping_ok
knob "$PF1/link=down"
ok "IPoIB is told that the port is down" within 5 never carrier "$PF1"
knob "$PF1/link=active"
ok "and that it is back" within 5 carrier "$PF1"
knob "$PF2/link=active"
ok "ping again after the link is back" within 15 ping_ok
"$IP" netns del hcatest
ok "unload" unload
ok "no module is left" never loaded mlx5_core
ok "reload with two ports, one Ethernet, own identity" load \
	"set=$PF1/ports=2,$PF1/link_layer2=eth" \
	"set=$PF1/node_guid=02:00:00:00:00:00:00:10,$PF1/fw_ver=16.1.2,$PF1/board_id=XY"
ok "two ports" within 5 test -d "$PCI/$PF1/infiniband/$(rdma "$PF1")/ports/2"
is "port 1" "$(port "$PF1" link_layer 1)" InfiniBand
is "port 2" "$(port "$PF1" link_layer 2)" Ethernet
is "node GUID" "$(node_guid "$PF1")" 0200:0000:0000:0010
is "firmware version" "$(field "$PCI/$PF1/infiniband/$(rdma "$PF1")/fw_ver")" 16.1.2
is "board" "$(field "$PCI/$PF1/infiniband/$(rdma "$PF1")/board_id")" XY
ok "IPoIB on port 1 only" never has_netdev "$PF1" 2

part "b: delays and faults"
start=$(now_ms)
load "set=$PF1/probe_delay_ms=800"
ok "slow probe" test $(($(now_ms) - start)) -ge 800
unload
start=$(now_ms)
"$MODPROBE" mlx5_core init_delay_ms=700
ok "slow module load" test $(($(now_ms) - start)) -ge 700
load "set=$PF1/probe_errno=EIO"
ok "failing probe leaves the PF unbound" never bound "$PF1"
ok "and the other bound" bound "$PF2"
is "failure counted" "$(counter "$PF1" probe_failed)" 1
is "bind answers the probe's errno" "$(errno_of "$PF1" $DRV/bind)" "Input/output error"
load "set=$PF1/probe_fail_nth=1"
ok "first probe fails" never bound "$PF1"
is "second probe succeeds" "$(errno_of "$PF1" $DRV/bind)" none
is "misspelt knob refused" "$(errno_of "$PF1/lnik=down" $DBG/set)" "Invalid argument"
is "misspelt value refused" "$(errno_of "$PF1/link=dwon" $DBG/set)" "Invalid argument"

part "c: counters"
load
within 5 state_is "$PF1" "4: ACTIVE"
has_line() { echo "$2" | grep -qx "$1"; }
writes() {
	awk '$1 ~ /^(probe|remove|sriov_configure|sysfs_write|set_.*)$/' $DBG/counters
}
before=$(writes)
ok "counters tell of two probes" has_line "probe 2" "$before"
for file in node_guid ports/1/state ports/1/gids/0; do
	field "$PCI/$PF1/infiniband/$(rdma "$PF1")/$file" >/dev/null
done
is "reading touches nothing" "$(writes)" "$before"
queries=$(counter "$PF1" query_port)
port "$PF1" state >/dev/null
ok "a query is counted" test "$(counter "$PF1" query_port)" -gt "$queries"
echo "$PF1" >$DRV/unbind
echo "$PF1" >$DRV/bind
is "bind and unbind are counted" "$(counter "$PF1" probe) $(counter "$PF1" remove)" "2 1"

part "d, e: SR-IOV and OFED's files"
SRIOV=$PCI/$PF1/sriov
within 5 has_netdev "$PF1"
is "mlx5_num_vfs is for root alone" "$(ls -l "$PCI/$PF1/mlx5_num_vfs" | cut -c1-10)" "-rw-------"
is "two VFs" "$(errno_of 2 "$PCI/$PF1/sriov_numvfs")" none
V0=$(vf "$PF1" 0)
V1=$(vf "$PF1" 1)
is "VF identity" "$(field "$PCI/$V0/device") $(field "$PCI/$V0/class")" "0x101c 0x020700"
ok "VF netdev" within 5 has_netdev "$V0"
is "GUID zero" "$(field "$SRIOV/0/port")" 00:00:00:00:00:00:00:00
is "policy Down" "$(field "$SRIOV/0/policy")" Down
is "VF port Down" "$(port "$V0" state)" "1: DOWN"
is "VF node GUID zero" "$(node_guid "$V0")" 0000:0000:0000:0000
is "node GUID" "$(errno_of 00:11:22:33:44:55:66:70 "$SRIOV/0/node")" none
is "port GUID" "$(errno_of 00:11:22:33:44:55:66:71 "$SRIOV/0/port")" none
is "read back" "$(field "$SRIOV/0/node") $(field "$SRIOV/0/port")" \
	"00:11:22:33:44:55:66:70 00:11:22:33:44:55:66:71"
is "policy Follow" "$(errno_of Follow "$SRIOV/0/policy")" none
is "the VF still has its old GUID" "$(node_guid "$V0")" 0000:0000:0000:0000
echo "$V0" >$DRV/unbind
echo "$V0" >$DRV/bind
ok "VF netdev after bind" within 5 has_netdev "$V0"
is "new node GUID" "$(node_guid "$V0")" 0011:2233:4455:6670
is "new port GUID in the address" "$(guid_in_address "$V0")" 00:11:22:33:44:55:66:71
ok "VF Active by Follow" within 5 state_is "$V0" "4: ACTIVE"
knob "$PF1/link=down"
ok "Follow follows down" within 5 state_is "$V0" "1: DOWN"
echo Up >"$SRIOV/0/policy"
ok "Up rises without the cable" within 5 state_is "$V0" "4: ACTIVE"
knob "$PF1/link=active"
echo Down >"$SRIOV/0/policy"
ok "policy Down" within 5 state_is "$V0" "1: DOWN"
for bad in 00:11:22:33:44:55:66 100:11:22:33:44:55:66:77 xx; do
	is "GUID '$bad' refused" "$(errno_of $bad "$SRIOV/0/port")" "Invalid argument"
done
is "lax: one digit, text behind" "$(errno_of 0:1:2:3:4:5:6:7tail "$SRIOV/1/port")" none
is "as parsed" "$(field "$SRIOV/1/port")" 00:01:02:03:04:05:06:07
is "policy is case-sensitive" "$(errno_of up "$SRIOV/0/policy")" "Invalid argument"
is "mlx5_num_vfs busy" "$(errno_of 1 "$PCI/$PF1/mlx5_num_vfs")" "Device or resource busy"
echo Follow >"$SRIOV/0/policy"
within 5 state_is "$V0" "4: ACTIVE"
"$IP" link set "$(netdev "$V0")" up
ok "carrier on the VF" within 5 carrier "$V0"
start=$(now_ms)
is "no VFs" "$(errno_of 0 "$PCI/$PF1/sriov_numvfs")" none
ok "a VF in use goes within 5 s" test $(($(now_ms) - start)) -lt 5000
ok "directories gone" never test -e "$SRIOV/0"
is "mlx5_num_vfs range" "$(errno_of 999 "$PCI/$PF1/mlx5_num_vfs")" "Numerical result out of range"
is "mlx5_num_vfs" "$(errno_of 2 "$PCI/$PF1/mlx5_num_vfs")" none
ok "VFs again" within 5 has_netdev "$V0"
is "GUID survived, first probe has it" "$(node_guid "$V0")" 0011:2233:4455:6670
knob "$PF1/guid_write=EIO"
is "GUID write fails" "$(errno_of 00:11:22:33:44:55:66:99 "$SRIOV/0/port")" "Input/output error"
knob "$PF1/guid_write=drop"
is "GUID write dropped" "$(errno_of 00:11:22:33:44:55:66:99 "$SRIOV/0/port")" none
is "silently" "$(field "$SRIOV/0/port")" 00:11:22:33:44:55:66:71
knob "$PF1/guid_write=ok $V0/latch=stale"
echo 00:11:22:33:44:55:66:88 >"$SRIOV/0/node"
echo "$V0" >$DRV/unbind
echo "$V0" >$DRV/bind
within 5 has_rdma "$V0"
is "stale latch" "$(node_guid "$V0")" 0011:2233:4455:6670
echo "$PF1" >$DRV/unbind
ok "unbinding the PF removes its VFs" never test -e "$PCI/$V0"
echo "$PF1" >$DRV/bind
echo 1 >"$PCI/$PF1/sriov_numvfs"
is "GUIDs do not survive the PF driver" "$(field "$SRIOV/0/node")" 00:00:00:00:00:00:00:00
echo 0 >"$PCI/$PF1/sriov_numvfs"
for e in "ENOSPC:No space left on device" "EIO:Input/output error"; do
	knob "$PF1/sriov_errno=${e%%:*}"
	is "sriov_numvfs: ${e%%:*}" "$(errno_of 1 "$PCI/$PF1/sriov_numvfs")" "${e#*:}"
done
knob "$PF1/sriov_errno=0"

part "f: mainline, through rtnetlink and ib_ipoib"
load "set=*/ofed=0"
within 5 has_netdev "$PF1"
ok "no OFED files" never test -e "$PCI/$PF1/mlx5_num_vfs"
echo 2 >"$PCI/$PF1/sriov_numvfs"
n1=$(netdev "$PF1")
ok "ip: node GUID" "$IP" link set "$n1" vf 0 node_guid 00:11:22:33:44:55:66:a0
ok "ip: port GUID" "$IP" link set "$n1" vf 0 port_guid 00:11:22:33:44:55:66:a1
ok "ip: state" "$IP" link set "$n1" vf 0 state auto
shown=$("$IP" link show "$n1" | tr '\n' ' ')
has() { case $shown in *"$1"*) ;; *) return 1 ;; esac; }
ok "ip shows the node GUID" has "NODE_GUID 00:11:22:33:44:55:66:a0"
ok "ip shows the port GUID" has "PORT_GUID 00:11:22:33:44:55:66:a1"
ok "ip shows the state" has "link-state auto"
ok "ip: VF out of range refused" never "$IP" link set "$n1" vf 7 state auto 2>/dev/null
echo "$V0" >$DRV/unbind
echo "$V0" >$DRV/bind
ok "VF netdev" within 5 has_netdev "$V0"
is "VF address" "$(guid_in_address "$V0")" 00:11:22:33:44:55:66:a1
echo 0 >"$PCI/$PF1/sriov_numvfs"

knob "vf/probe_delay_ms=1000"
start=$(now_ms)
echo 2 >"$PCI/$PF1/sriov_numvfs"
ok "probes inside sriov_numvfs are one after the other" \
	test $(($(now_ms) - start)) -ge 2000
for v in $V0 $V1; do
	echo "$v" >$DRV/unbind
done
start=$(now_ms)
for v in $V0 $V1; do
	echo "$v" >$DRV/bind &
done
wait
ok "binds of sibling VFs run side by side" test $(($(now_ms) - start)) -lt 2000
knob "vf/probe_delay_ms=0"
echo 0 >"$PCI/$PF1/sriov_numvfs"

part "g: autoprobe, driver_override, removal"
echo 0 >"$PCI/$PF1/sriov_drivers_autoprobe"
echo 2 >"$PCI/$PF1/sriov_numvfs"
ok "autoprobe=0 leaves VFs unbound" never bound "$V0"
is "and bind refuses" "$(errno_of "$V0" $DRV/bind)" "No such device"
echo mlx5_core >"$PCI/$V0/driver_override"
is "driver_override lets bind through" "$(errno_of "$V0" $DRV/bind)" none
echo 1 >"$PCI/$PF1/sriov_drivers_autoprobe"
is "so does autoprobe=1" "$(errno_of "$V1" $DRV/bind)" none
echo 1 >"$PCI/$PF1/remove"
ok "surprise removal" never test -e "$PCI/$PF1"
echo 1 >/sys/bus/pci/rescan
ok "back after a rescan" within 5 has_netdev "$PF1"
is "with its identity" "$(field "$PCI/$PF1/device")" 0x101b
part "h: a sick card"
load
within 5 has_netdev "$PF1"
echo 1 >"$PCI/$PF1/sriov_numvfs"
asleep() { read -r pid comm process rest <"/proc/$asker/stat" && [ "$process" = D ]; }
# A process sleeps like this for a moment, too, while its program is read.
stays_asleep() { asleep && sleep 0.2 && asleep; }
alive() { read -r pid comm process rest <"/proc/$asker/stat" && [ "$process" != Z ]; } 2>/dev/null
hangs() {	# WHO HOW HOW-NOT COMMAND...: what it does, until HOW is taken back
	who=$1 back=$3
	eval "$2"
	shift 3
	"$@" >/dev/null 2>&1 &
	asker=$!
	ok "$who: no answer" within 2 stays_asleep
	kill -KILL $asker
	sleep 0.2
	ok "$who: nor for who is killed" asleep
	eval "$back"
	ok "$who: an end when it is taken back" within 2 never alive
}
hold() { echo "$2" >"$DBG/$1"; }
hangs "port" "knob $PF1/port_query_ms=ever" "knob $PF1/port_query_ms=0" \
	field "$PCI/$PF1/infiniband/$(rdma "$PF1")/ports/1/state"
knob "$PF1/port_query_ms=ever"
ok "the other port answers" test -n "$(port "$PF2" state)"
knob "$PF1/port_query_ms=500"
start=$(now_ms)
port "$PF1" state >/dev/null
ok "a port that is slow" test $(($(now_ms) - start)) -ge 500
knob "$PF1/port_query_ms=0"
hangs "VF, OFED" "knob $PF1/vf_query_ms=ever" "knob $PF1/vf_query_ms=0" field "$SRIOV/0/node"
hangs "VF, netlink" "knob $PF1/vf_query_ms=ever" "knob $PF1/vf_query_ms=0" \
	"$IP" link show "$(netdev "$PF1")"
hangs "device lock" "hold $PF1/device_lock 1" "hold $PF1/device_lock 0" field "$PCI/$PF1/sriov_numvfs"
hangs "RTNL" "hold rtnl 1" "hold rtnl 0" "$IP" link show lo
echo 0 >"$PCI/$PF1/sriov_numvfs"

part "i: unloading"
ok "unload at the end" unload
part "end"
dmesg >/tmp/hcatest.log
clean() { ! grep -E 'BUG:|Oops|WARNING:|Call Trace|refcount_t' /tmp/hcatest.log; }
ok "kernel log clean" clean

echo "1..$count"
[ $failed = 0 ]
