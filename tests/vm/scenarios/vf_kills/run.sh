set -u
. /usr/lib/bed/vf.sh
ofed=0000:01:00.0
mainline=0000:02:00.0
udevadm settle
systemctl stop systemd-udevd systemd-udevd-kernel.socket systemd-udevd-control.socket
for b in 70 71; do sed "s/02:00:00:70/02:00:00:$b/" /etc/ibprov/ibprov.toml >"/run/$b.toml"; done
b=70
other() { [ "$b" = 70 ] && b=71 || b=70; }
run() { # PF: as a user does
	ibprov apply --config "/run/$b.toml" "$1" 2>/dev/null
}
killed_at() { # PF N before|after
	/usr/lib/bed/kill-at "$2" "$3" ibprov apply --config "/run/$b.toml" "$1" 2>/dev/null
}
round() { # PF fresh|again N: killed before step N, then after step N; then run
	other
	[ "$2" = again ] || echo 0 >"$pci/$1/sriov_numvfs"
	killed_at "$1" "$3" before
	first=$?
	killed_at "$1" "$3" after
	second=$?
	run "$1"
	echo "$1 $2 step $3: $first $second, then $?, $b"
	facts "$1"
	ls /run/ibprov/pf/*.undo 2>/dev/null
}
for how in fresh again; do
	n=0
	first=137
	# Until there is no such step any more.
	while [ "$first" = 137 ]; do
		n=$((n + 1))
		phase "$how $n"
		round "$ofed" "$how" "$n" >>"$OUT/rounds"
	done
done
phase random
# How long a run takes that nobody kills, fresh (1) and again (0), seconds.
for fresh in 1 0; do
	other
	[ $fresh = 0 ] || echo 0 >"$pci/$mainline/sriov_numvfs"
	begin=$(date +%s%N)
	run "$mainline"
	echo $((($(date +%s%N) - begin) / 1000)) >"/run/takes-$fresh"
done
for n in 1 2 3 4 5 6 7 8 9 10; do
	other
	[ $((n % 2)) = 0 ] || echo 0 >"$pci/$mainline/sriov_numvfs"
	delay=$(od -An -N2 -tu2 /dev/urandom | awk -v takes="$(cat "/run/takes-$((n % 2))")" '{ printf "%.3f", $1 / 65536 * takes / 1000000 }')
	timeout --foreground --signal=KILL "$delay" ibprov apply --config "/run/$b.toml" "$mainline" 2>/dev/null
	first=$?
	run "$mainline"
	echo "$mainline random after $delay: $first 0, then $?, $b"
	facts "$mainline"
	ls /run/ibprov/pf/*.undo 2>/dev/null
done >"$OUT/random"
phase end
