# A line of figures for each number of guests, which all wait:
#     GUESTS WAITING PROCESSES CONNECTIONS PSS_KIB READS READS_AT_REST SECONDS
# READS are those of the service and its children until all wait, READS_AT_REST those in 5 s of
# waiting. Then all are started, in three ways, and there is a line for each way in
# $OUT/starts: when their VFs become right, in the first pass, and in a first pass that cannot
# wait for them.
set -u
. /usr/lib/bed/iface.sh
ms() { echo $(($(date +%s%N) / 1000000)); }
bus=/run/dbus/system_bus_socket
connections() { awk -v bus=$bus '$8 == bus && $4 != "00010000" { n++ } END { print n + 0 }' /proc/net/unix; }
put() { mkdir -p "${1%/*}" && echo "$2" >"$1"; }
function() { # FOLDER DEVICE DRIVER
	put "$1/class" 0x020700
	put "$1/vendor" 0x15b3
	put "$1/device" "$2"
	put "$1/modalias" pci:none
	ln -s "../../drivers/$3" "$1/driver"
}
devices=/run/card/pci/devices
for bus_number in 4b 4c; do
	pf=0000:$bus_number:00.0
	function $devices/$pf 0x101b mlx5_core
	put $devices/$pf/sriov_totalvfs 127
	put $devices/$pf/infiniband/mlx5_$bus_number/node_guid b859:9f03:0012:a4$bus_number
	put $devices/$pf/infiniband/mlx5_$bus_number/ports/1/link_layer InfiniBand
	put $devices/$pf/infiniband/mlx5_$bus_number/ports/1/gids/0 fe80:0000:0000:0000:b859:9f03:0012:a4$bus_number
	n=0
	while [ $n -lt 127 ]; do
		at=$(printf '0000:%s:%02x.%d' $bus_number $(((n + 1) / 8)) $(((n + 1) % 8)))
		function "$devices/$at" 0x101c vfio-pci
		ln -s ../$pf "$devices/$at/physfn"
		ln -s "../$at" "$devices/$pf/virtfn$n"
		put $devices/$pf/sriov/$n/node "$(printf '02:00:00:00:%s:12:00:%02x' $bus_number $n)"
		put $devices/$pf/sriov/$n/port "$(printf '02:00:00:00:%s:12:01:%02x' $bus_number $n)"
		put $devices/$pf/sriov/$n/policy Down
		n=$((n + 1))
	done
done
mkdir -p /etc/ibprov
slice=
find_unit() { slice=$(find /sys/fs/cgroup -type d -name ibprov-guests.service | head -n 1); }
processes() { cat "$slice/cgroup.procs" 2>/dev/null; }
# The reads of a child that has been waited for are counted with its parent's (proc_pid_io(5)).
reads() { for pid in $(processes); do cat "/proc/$pid/io"; done 2>/dev/null | awk '$1 == "syscr:" { n += $2 } END { print n + 0 }'; }
pss() { for pid in $(processes); do cat "/proc/$pid/smaps_rollup"; done 2>/dev/null | awk '$1 == "Pss:" { n += $2 } END { print n + 0 }'; }
rests() {
	rests=$(reads)
	sleep 1
	[ $(($(reads) - rests)) -lt 100 ]
}
up() { grep -c '"phase": "up"' /run/ibprov/guests.json; }
# starts GUESTS HOW BEFORE: until they all are up; leaves a line
#     GUESTS HOW MS MOST_CONNECTIONS READS
starts() {
	begin=$(ms)
	most=0
	while [ "$(up)" -lt "$1" ] && [ $(($(ms) - begin)) -lt 120000 ]; do
		now=$(connections)
		[ "$now" -le $most ] || most=$now
		sleep 0.05
	done
	took=$(($(ms) - begin))
	[ "$(up)" -eq "$1" ] || echo "$1 $2: only $(up) are up"
	echo "$1 $2 $took $((most - none)) $(($(reads) - $3))" >>"$OUT/starts"
}
anew() { # GUESTS HOW
	sed -i 's/^timeout = .*/timeout = "100s"/' /etc/ibprov/ibprov.toml
	rm -f /run/ibprov/guests.json
	systemctl start --no-block ibprov-guests.service
	within 20 test -e /run/ibprov/guests.json
	find_unit
	starts "$1" "$2" 0
	systemctl stop ibprov-guests.service 'vm@*.service'
}
none=$(connections)
for guests in 63 127 254; do
	{
		printf '[guests]\ntimeout = "5s"\n'
		n=0
		while [ $n -lt $guests ]; do
			[ $n -lt 127 ] && pf=4b || pf=4c
			printf '[[guest]]\nunit = "vm@%d.service"\nvfs = ["0000:%s:00.0/%d"]\n' $n $pf $((n % 127))
			n=$((n + 1))
		done
		# One that waits for ever, so that the service is there to be asked what it has used.
		printf '[[guest]]\nunit = "vm@never.service"\nvfs = ["0000:4c:00.0/200"]\n'
	} >/etc/ibprov/ibprov.toml
	begin=$(ms)
	systemctl start ibprov-guests.service
	find_unit
	within 60 rests || echo "$guests: no rest"
	took=$((($(ms) - begin) / 1000))
	used=$(reads)
	sleep 5
	rest=$(($(reads) - used))
	waiting=$(grep -c '"waits": "VF' /run/ibprov/guests.json)
	echo "$guests $waiting $(processes | wc -l) $(($(connections) - none)) $(pss) $used $rest $took" >>"$OUT/figures"
	cp /run/ibprov/guests.json "$OUT/$guests.json"
	systemctl show -p StatusText --value ibprov-guests.service >"$OUT/$guests.status"
	before=$(reads)
	for policy in $devices/*/sriov/*/policy; do echo Follow >"$policy"; done
	starts $guests late "$before"
	systemctl stop ibprov-guests.service 'vm@*.service'
	anew $guests first
	# Who is ordered after the service is started by its first pass, and waited for after it.
	mkdir /run/systemd/system/vm@.service.d
	printf '[Unit]\nAfter=ibprov-guests.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=\nExecStart=/bin/sleep 1\n' >/run/systemd/system/vm@.service.d/after.conf
	systemctl daemon-reload
	[ $guests = 63 ] || anew $guests issued
	rm -r /run/systemd/system/vm@.service.d
	systemctl daemon-reload
	for policy in $devices/*/sriov/*/policy; do echo Down >"$policy"; done
done
true
