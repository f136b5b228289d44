# Leaves in figures what the boot has cost:
#     MS BOOT_CPU_USEC INTERFACES_CPU_USEC INIT_CPU_USEC BUS_CPU_USEC UDEV_CPU_USEC
# MS is how long ibprov.service took; of PID 1, the bus and udev it is what they have used since
# the first unit of ibprov's began.
set -u
. /usr/lib/bed/vf.sh
. /usr/lib/bed/used.sh
udevadm settle
# at_rest: no instance of ibprov's is at work. One that waits for carrier has an outcome.
at_rest() {
	all=0 ended=0
	for netdev in /sys/class/net/*; do
		first type "$netdev/type"
		[ "$type" != 32 ] || all=$((all + 1))
	done
	for outcome in /run/ibprov/ports/*.json; do [ ! -e "$outcome" ] || ended=$((ended + 1)); done
	[ "$all" = "$ended" ] && [ "$(systemctl show -P ActiveState ibprov.service)" = active ]
}
[ ! -e /usr/sbin/ibprov ] || within 120 at_rest || echo "no rest: $ended of $all interfaces have outcomes"
# Some starts more, when all is at rest.
sleep 8
systemctl stop prober.service sampler.service
cp /run/probes "$OUT/probes"
ls /sys/class/infiniband >"$OUT/devices"
cat /sys/class/infiniband/*/ports/1/link_layer | sort | uniq -c >"$OUT/layers"
ip -o link >"$OUT/links"
if [ -e /run/ibprov/boot.json ]; then
	since_boot() { systemctl show -P "$1TimestampMonotonic" ibprov.service; }
	ms=$((($(since_boot ActiveEnter) - $(since_boot InactiveExit)) / 1000))
	now=$(used)
	set -- $(cat /run/used-before)
	before_init=$1 before_bus=$2 before_udev=$3
	set -- $now
	echo "$ms $(($(systemctl show -P CPUUsageNSec ibprov.service) / 1000)) $(cpu_of 'system.slice/system-ibprov\x2diface.slice') $(($1 - before_init)) $(($2 - before_bus)) $(($3 - before_udev))" >"$OUT/figures"
	(cd /run/most && for one in *; do echo "$one $(cat "$one")"; done) >"$OUT/most"
	ibprov status >"$OUT/status" 2>&1
	echo "status: $?"
fi
systemd-analyze --no-pager blame | head -n 15 >"$OUT/blame"
dmesg >"$OUT/dmesg"
true
