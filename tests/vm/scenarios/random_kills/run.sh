ifdown --force ib0
# Nothing but boot is judged: status warns of an interface that is to be up and is not yet.
: >/etc/network/interfaces
systemctl stop ibprov.service
round=0
while [ "$round" -lt 40 ]; do
	round=$((round + 1))
	modprobe -r ib_ipoib
	modprobe -r ib_umad
	modprobe -r ib_uverbs
	# Up to 0.4 s: most of a run.
	delay=$(od -An -N2 -tu2 /dev/urandom | awk '{ printf "%.3f", 0.02 + $1 / 65536 * 0.38 }')
	# ibprov alone, as its unit's KillMode=process does: a modprobe that is
	# killed leaves ib_ipoib loaded and without its netdevs.
	timeout --foreground --signal=KILL "$delay" ibprov boot >/dev/null 2>&1
	killed=$?
	ibprov boot >"$OUT/last-run" 2>&1
	then=$?
	ibprov status >"$OUT/last-status"
	echo "after $delay s: $killed, then $then, status $?"
done
