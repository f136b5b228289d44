begin=$(cut -d' ' -f1 /proc/uptime)
echo 64 >/sys/bus/pci/devices/0001:01:00.0/sriov_numvfs
until=$(($(cut -d. -f1 /proc/uptime) + 600))
done=0
while [ "$(cut -d. -f1 /proc/uptime)" -lt $until ]; do
	udevadm settle --timeout=60
	done=$(systemctl list-units --no-legend --plain --state=active 'ibprov-iface@*' | wc -l)
	[ "$done" -lt 65 ] || break
	sleep 0.5
done
echo "active: $done"
echo "umcast: $(cat /sys/class/net/*/umcast | grep -c 1)"
echo "took: $(cut -d' ' -f1 /proc/uptime) - $begin, load $(cat /proc/loadavg)"
systemctl list-units --no-legend --plain --state=failed 'ibprov-iface@*' >"$OUT/failed"
