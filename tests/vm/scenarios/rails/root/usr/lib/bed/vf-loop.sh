# As others wait for VFs: counts them every 2 s, and takes a count that has been the same five
# times, and is not zero, for the last one.
last=0 same=0
while [ "$same" -lt 5 ]; do
	sleep 2
	count=$(ls -d /sys/class/net/*/device/physfn 2>/dev/null | wc -l)
	[ "$count" = "$last" ] && [ "$count" -gt 0 ] && same=$((same + 1)) || same=0
	last=$count
done
echo "$count" >/run/loop
