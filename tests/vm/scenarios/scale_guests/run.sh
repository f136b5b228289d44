# A line of figures for each of two ways in which guests come to their VFs, `boot` as in any
# boot, after the plan, and `late`: the guests wait, and the VFs come then.
#     WAY MS PLAN_CPU_USEC GUESTS_CPU_USEC INIT_CPU_USEC BUS_CPU_USEC UDEV_CPU_USEC
# MS is how long it took from the start of the plan until all guests were up; of PID 1, the bus
# and udev it is what they have used since the plan began, or while the guests came late.
set -u
. /usr/lib/bed/vf.sh
. /usr/lib/bed/used.sh
for word in $(cat /proc/cmdline); do
	case $word in bed.vfs=*) vfs=${word#*=} ;; esac
done
agent=true
[ -e /usr/sbin/ibprov ] || agent=false
pfs="0001:01:00.0 0001:02:00.0"
unit_cpu() { echo $(($(systemctl show -P CPUUsageNSec "$1") / 1000)); }
since_boot() { systemctl show -P "$2TimestampMonotonic" "$1"; }
up() { systemctl list-units --no-legend --plain --state=active 'vm@*' | wc -l; }
all_up() { [ "$(up)" -eq $((2 * vfs)) ]; }
figures() { # WAY MS INIT BUS UDEV
	if $agent; then
		plan=$(unit_cpu ibprov.service) guests=$(unit_cpu ibprov-guests.service)
	else
		plan=$(unit_cpu by-hand.service) guests=0
	fi
	echo "$1 $2 $plan $guests $3 $4 $5" >>"$OUT/figures"
}
udevadm settle --timeout=300
within 300 all_up || echo "boot: only $(up) guests are up"
# Some starts of the probe more, when all is at rest.
sleep 5
systemctl stop prober.service
cp /run/probes "$OUT/probes"
set -- $(cat /run/used-before)
init=$1 bus=$2 udev=$3
set -- $(used)
if $agent; then
	begun=$(since_boot ibprov.service InactiveExit) over=$(since_boot ibprov-guests.service ActiveEnter)
	systemctl show -p StatusText ibprov-guests.service
else
	begun=$(since_boot by-hand.service InactiveExit) over=$(since_boot by-hand-guests.service ActiveEnter)
fi
figures boot $(((over - begun) / 1000)) $(($1 - init)) $(($2 - bus)) $(($3 - udev))
for pf in $pfs; do facts $pf; done >"$OUT/planned"
cp /run/ibprov/guests.json "$OUT/guests.json" 2>/dev/null
if $agent; then
	# A node whose cards come late: guests wait for VFs that are not there.
	systemctl stop ibprov-guests.service ibprov.service 'vm@*.service'
	for pf in $pfs; do echo 0 >"$pci/$pf/sriov_numvfs"; done
	udevadm settle --timeout=300
	systemctl start --no-block ibprov-guests.service
	waits() { [ "$(ibprov guests --status 2>/dev/null | grep -c ': waits: ')" -eq $((2 * vfs)) ]; }
	within 60 waits || echo "late: not all guests wait"
	systemctl start prober.service
	set -- $(used)
	init=$1 bus=$2 udev=$3
	begin=$(uptime_ms)
	systemctl start ibprov.service || echo "late: ibprov.service has failed"
	within 600 all_up || echo "late: only $(up) guests are up"
	took=$(($(uptime_ms) - begin))
	at_end() { [ "$(systemctl show -P SubState ibprov-guests.service)" = exited ]; }
	within 60 at_end || echo "late: the service of guests has not ended"
	systemctl stop prober.service sampler.service
	cp /run/probes "$OUT/probes"
	(cd /run/most && for one in *; do echo "$one $(cat "$one")"; done) >"$OUT/most"
	set -- $(used)
	figures late $took $(($1 - init)) $(($2 - bus)) $(($3 - udev))
	for pf in $pfs; do facts $pf; done >"$OUT/planned.late"
fi
dmesg >"$OUT/dmesg"
true
