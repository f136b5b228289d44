# Helpers of the scenarios about VFs, to be sourced. They ask the kernel, never
# ibprov. They do with the shell's own commands what they can: under emulation
# each program takes 20 ms to start.
pci=/sys/bus/pci/devices
# systemd may have mounted it.
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null || :
set=/sys/kernel/debug/ibsim/mlx5_core/set
[ ! -e /sys/kernel/debug/ibcard/set ] || set=/sys/kernel/debug/ibcard/set
knobs() { for rule; do echo "$rule" >$set; done; }
target() { (cd -P "$1" 2>/dev/null && echo "${PWD##*/}"); }
vf() { target "$pci/$1/virtfn$2"; }
# first VARIABLE FILE: its first line, or -
first() {
	eval "$1="
	[ ! -r "$2" ] || read -r "$1" <"$2" || :
	eval ": \${$1:=-}"
}
# facts PF: of each VF its number, driver, driver_override, RDMA device's node
# GUID, low half of GID 0, last 8 bytes of the netdev's address.
facts() {
	facts_vf=0
	while [ -e "$pci/$1/virtfn$facts_vf" ]; do
		d=$pci/$1/virtfn$facts_vf
		driver=$(target "$d/driver" || echo -)
		first override "$d/driver_override"
		first node "$d"/infiniband/*/node_guid
		first gid "$d"/infiniband/*/ports/1/gids/0
		first address "$d"/net/*/address
		echo "$facts_vf $driver $override $node ${gid#*:*:*:*:} ${address#*:*:*:*:*:*:*:*:*:*:*:*:}"
		facts_vf=$((facts_vf + 1))
	done
	first autoprobe "$pci/$1/sriov_drivers_autoprobe"
	echo "autoprobe $autoprobe"
}
# counters: what was done to HCAs; what IPoIB and the subnet manager say to each
# other all the time is left out.
counters() {
	grep -sHE '^(probe|probe_failed|remove|reset|sriov_configure|sysfs_write|set_node_guid|set_port_guid|set_policy|rdma_register|rdma_unregister) ' \
		/sys/kernel/debug/ibsim/*/*/counters /sys/kernel/debug/ibcard/*/counters |
		sed 's,^/sys/kernel/debug/ibsim/,,; s,^/sys/kernel/debug/,,; s,/counters:, ,'
}
# apply NAME [PF]: run it and keep exit code, report and log.
apply() {
	name=$1
	shift
	ibprov apply --format json "$@" >"$OUT/$name.json" 2>"$OUT/$name.log"
	echo "$name: $?"
}
# listen: uevents and link events go to files from here on, until deaf. Debian 11's ip cannot
# follow links that have many VFs, says so in the file and ends: there are uevents alone then.
listen() {
	udevadm monitor >"$OUT/uevents" 2>&1 &
	monitor=$!
	ip monitor link >"$OUT/link-events" 2>&1 &
	ipmonitor=$!
	modprobe dummy
	while { kill -0 "$ipmonitor" 2>/dev/null && ! grep -q heard "$OUT/link-events"; } || ! grep -q heard "$OUT/uevents"; do
		ip link add heard type dummy
		udevadm settle
		ip link del heard
		udevadm settle
	done
}
deaf() { kill "$monitor" "$ipmonitor" 2>/dev/null; }
uptime_ms() { read -r up rest </proc/uptime && echo "${up%.*}${up#*.}0"; }
# within SECONDS COMMAND...: until it succeeds, for what has no event.
within() {
	end=$(($(uptime_ms) + $1 * 1000))
	shift
	until "$@"; do
		[ "$(uptime_ms)" -lt "$end" ] || return 1
		sleep 0.5
	done
}
# pf_units_ended: the units that udev has started for PFs.
pf_units_ended() {
	within 60 pf_units_idle || { echo "ibprov-pf@ does not end"; exit 1; }
}
pf_units_idle() { [ -z "$(systemctl list-units --no-legend --state=activating 'ibprov-pf@*')" ]; }
# phase WORDS: where the script is, for who looks at the console.
phase() { read -r up rest </proc/uptime && echo "$up $*" >/dev/console; }
