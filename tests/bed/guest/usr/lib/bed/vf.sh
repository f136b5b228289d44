# Helpers of the scenarios about VFs, to be sourced. They ask the kernel, never
# ibprov.
pci=/sys/bus/pci/devices
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
knobs() { for rule; do echo "$rule" >/sys/kernel/debug/ibsim/mlx5_core/set; done; }
vf() { basename "$(readlink "$pci/$1/virtfn$2")"; }
# facts PF: of each VF its number, driver, driver_override, RDMA device's node
# GUID, low half of GID 0, last 8 bytes of the netdev's address.
facts() {
	facts_vf=0
	while [ -e "$pci/$1/virtfn$facts_vf" ]; do
		d=$pci/$1/virtfn$facts_vf
		driver=$(basename "$(readlink "$d/driver" || echo -)")
		node=$(cat "$d"/infiniband/*/node_guid 2>/dev/null || echo -)
		gid=$(cat "$d"/infiniband/*/ports/1/gids/0 2>/dev/null | cut -d: -f5-8)
		tail=$(cat "$d"/net/*/address 2>/dev/null | cut -d: -f13-20)
		echo "$facts_vf $driver $(cat "$d/driver_override") $node ${gid:--} ${tail:--}"
		facts_vf=$((facts_vf + 1))
	done
	echo "autoprobe $(cat "$pci/$1/sriov_drivers_autoprobe")"
}
# counters: what was done to HCAs; what IPoIB and the subnet manager say to each
# other all the time is left out.
counters() {
	for f in /sys/kernel/debug/ibsim/*/*/counters; do
		grep -HE '^(probe|probe_failed|remove|sriov_configure|sysfs_write|set_node_guid|set_port_guid|set_policy|rdma_register|rdma_unregister) ' "$f"
	done | sed 's,.*ibsim/,,; s,/counters:, ,'
}
# apply NAME [PF]: run it and keep exit code, report and log.
apply() {
	name=$1
	shift
	ibprov apply --format json "$@" >"$OUT/$name.json" 2>"$OUT/$name.log"
	echo "$name: $?"
}
uptime_ms() { awk '{ printf "%d", $1 * 1000 }' /proc/uptime; }
# within SECONDS COMMAND...: until it succeeds, for what has no event.
within() {
	end=$(($(uptime_ms) + $1 * 1000))
	shift
	until "$@"; do
		[ "$(uptime_ms)" -lt "$end" ] || return 1
		sleep 0.1
	done
}
# phase WORDS: where the script is, for who looks at the console.
phase() { echo "$(cut -d' ' -f1 /proc/uptime) $*" >/dev/console; }
