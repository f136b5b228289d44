# At each stage there are so many VFs, without carrier as long as their PF has no plan for
# them, and a profile for each: NetworkManager does not say which it will activate.
set -u
. /usr/lib/bed/iface.sh
. /usr/lib/bed/probe.sh
pf=/sys/bus/pci/devices/0001:01:00.0
waited() { [ "$(grep -l '"bring_up": "waiting"' /run/ibprov/ports/*.json | wc -l)" -ge "$1" ]; }
gone() { ! ls /sys/class/net/ib[1-9]* >/dev/null 2>&1; }
# come: N VFs, until all wait.
come() {
	echo $n >$pf/sriov_numvfs
	within 200 waited $n || echo "$n: not all have waited"
	udevadm settle
}
profiles=0
for n in 4 8 16; do
	while [ $profiles -lt $n ]; do
		profiles=$((profiles + 1))
		file=/etc/NetworkManager/system-connections/fabric-$profiles.nmconnection
		printf '[connection]\nid=fabric-%d\nuuid=5f3c5a5c-0000-4000-8000-0000000000%02d\ntype=infiniband\ninterface-name=ib%d\n\n[ipv4]\nmethod=manual\naddress1=10.1.%d.1/24\n\n[ipv6]\nmethod=disabled\n' $profiles $profiles $profiles $profiles >$file
		chmod 600 $file
	done
	nmcli connection reload
	# A file that was written just now may be written again unnoticed.
	sleep 2
	rm -f /run/ibprov/ports/*
	opens opened.$n come
	grep -h '"configured"\|"bring_up"' /run/ibprov/ports/*.json | sort | uniq -c >"$OUT/ends.$n"
	echo 0 >$pf/sriov_numvfs
	within 60 gone || echo "$n: not all are gone"
	udevadm settle
done
dmesg >"$OUT/dmesg"
true
