# Two boots; what each is about is kept on the disk until the end.
set -u
. /usr/lib/bed/iface.sh
keep=/var/lib/bed
mkdir -p $keep
# as NAME COMMAND...: a line with its exit code, and a file with what it said.
as() {
	name=$1
	shift
	"$@" >"$keep/$name" 2>"$keep/$name.stderr"
	echo "$name: $?"
}
carrier() { [ "$(cat /sys/class/net/ib0/carrier)" = 1 ]; }
at_rest() { [ -z "$(systemctl list-jobs --no-legend)" ]; }
look() {
	within 60 at_rest || echo "jobs are left"
	within 30 carrier || echo "no carrier"
	for unit in lnet.service kubelet.service mnt.mount opensm.service; do
		echo "$1 $unit: $(systemctl show -p Result --value $unit) $(systemctl is-active $unit) $(systemctl show -p ConditionResult --value $unit)"
	done
	ports=$(systemctl show -p ActiveEnterTimestampMonotonic --value ibprov.service)
	for unit in lnet.service kubelet.service mnt.mount opensm.service; do
		began=$(systemctl show -p InactiveExitTimestampMonotonic --value $unit)
		[ "$began" -gt "$ports" ] && echo "$1 $unit: after the ports"
	done
}
if [ ! -e $keep/second ]; then
	{
		look first
		as mount systemctl show -p After,Before mnt.mount
		as unordered ibprov consumers
		as check ibprov check --format json
		as dry-run ibprov consumers --install --dry-run
		as dry-run-files find /etc/systemd -name '50-ibprov*'
		as install ibprov consumers --install
		as installed find /etc/systemd -name '50-ibprov*'
		as install-again ibprov consumers --install
	} >>$keep/stdout
	touch $keep/second
	systemctl reboot
	exec sleep infinity
fi
{
	look second
	as ordered ibprov consumers
	# The link has half of the rate that was bought, and half of the PCIe lanes.
	as status ibprov status --format json
	as status-text ibprov status
	as online ibprov wait-online --format json --timeout 20s
	as check-degraded ibprov check --format json
	as metrics ibprov metrics
	as boot cat /run/ibprov/boot.json
	# A port without a link has no rate, though sysfs shows 10 Gb/s.
	echo 0001:01:00.0/link=down >/sys/kernel/debug/ibcard/set
	polling() { grep -q Polling /sys/class/infiniband/*/ports/1/phys_state; }
	within 20 polling || echo "the link stays up"
	as rate cat /sys/class/infiniband/*/ports/1/rate
	as down ibprov status --format json
	# Its own files are taken away, and one that was changed is left.
	echo '# of the site' >>/etc/systemd/system/kubelet.service.d/50-ibprov-order.conf
	as remove ibprov consumers --remove
	as left find /etc/systemd -name '50-ibprov*'
} >>$keep/stdout
cp $keep/* "$OUT/"
cat $keep/stdout
