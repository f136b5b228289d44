set -u
. /usr/lib/bed/vf.sh
# From here on only this script applies.
ln -s /dev/null /run/systemd/system/ibprov-pf@.service
systemctl daemon-reload
modprobe ib_ipoib
udevadm settle
timed() { # NAME COMMAND...
	timed=$1
	phase "$timed"
	shift
	before=$(uptime_ms)
	"$@"
	echo "$timed took: $(($(uptime_ms) - before)) ms"
}
timed first apply first 0001:01:00.0
facts 0001:01:00.0 >"$OUT/first"
timed second apply second 0001:02:00.0
facts 0001:02:00.0 >"$OUT/second"
timed settle udevadm settle
counters >"$OUT/counters.before"
timed again apply again
counters >"$OUT/counters.after"
timed status sh -c "ibprov status --format json >$OUT/status.json"
awk '/^(MemTotal|MemAvailable|SUnreclaim):/' /proc/meminfo
dmesg >"$OUT/dmesg"
true
