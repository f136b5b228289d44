set -u
. /usr/lib/bed/vf.sh
steps=0001:01:00.0
second=0001:02:00.0
[ -e "$pci/$steps" ] || steps=0000:01:00.0
ln -s /dev/null /run/systemd/system/ibprov-pf@.service
systemctl daemon-reload
modprobe ib_ipoib
udevadm settle
systemctl stop systemd-udevd systemd-udevd-kernel.socket systemd-udevd-control.socket
for b in 70 71; do sed "s/02:00:00:70/02:00:00:$b/" /etc/ibprov/ibprov.toml >"/run/$b.toml"; done
b=70
other() { [ "$b" = 70 ] && b=71 || b=70; }
run() { # PF: as a user does
	ibprov apply --config "/run/$b.toml" "$1" >/run/last.log 2>&1
}
killed_at() { # PF N [-p]
	/usr/lib/bed/kill-at ${3:-} "$2" ibprov apply --config "/run/$b.toml" "$1" >/dev/null 2>&1
}
left() { # what a run that has ended must not leave
	ls -d /run/ibprov/pf/*.undo /run/ibprov/.*.[0-9]* 2>/dev/null
	for process in /proc/[0-9]*; do
		case $(readlink "$process/exe") in *ibprov*) tr '\0' ' ' <"$process/cmdline" ;; esac
	done
}
tell() { # WORDS PF: what became of a round; the log of a run that went wrong
	echo "$1"
	facts "$2"
	left
	case $1 in *"then 0, "*) ;; *) sed 's/^/log: /' /run/last.log ;; esac
}
by_child() { # PF: what a child has put back that nobody has killed, and what it has not
	echo "$killed: $(cat "$pci/$1"/virtfn*/driver_override 2>/dev/null | sort -u) $(cat "$pci/$1/sriov_drivers_autoprobe") $(left)"
}
round() { # PF fresh|again N [-p]: killed after step N, which is before the next; then run
	other
	[ "$2" = again ] || echo 0 >"$pci/$1/sriov_numvfs"
	killed_at "$1" "$3" ${4:-}
	killed=$?
	[ -z "${4:-}" ] || by_child "$1" >>"$OUT/by-child"
	run "$1"
	tell "$1 $2${4:-} step $3: $killed, then $?, $b" "$1"
}
for how in fresh again; do
	for who in "" -p; do
		n=0
		killed=137
		# Until there is no such step any more.
		while [ "$killed" = 137 ]; do
			n=$((n + 1))
			phase "$how $n $who"
			round "$steps" "$how" "$n" $who >>"$OUT/rounds"
		done
	done
done
[ -e "$pci/$second" ] || exit 0
phase "all of it killed in the middle of a bind"
group=/sys/fs/cgroup/round
mkdir "$group"
probed() { [ -e "$(echo "$pci/$second"/virtfn1/mlx5_core.rdma.*/driver)" ]; }
half_bound() { [ -e "$pci/$second/virtfn1/driver" ] && ! probed; }
empty() { [ -z "$(cat "$group/cgroup.procs")" ]; }
# The kernel makes threads in the probe, and ends it where it is killed before one is there:
# on a busy machine they may be there first.
attempt=0
until half_bound || [ $attempt = 5 ]; do
	attempt=$((attempt + 1))
	knobs "$second+vf/slow.ALLOC_XRCD=3000"
	echo 0 >"$pci/$second/sriov_numvfs"
	sh -c "echo \$\$ >$group/cgroup.procs; exec ibprov apply --config /run/$b.toml $second" >/dev/null 2>&1 &
	within 30 probed
	echo 1 >"$group/cgroup.kill"
	within 60 empty
	knobs "$second+vf/slow.ALLOC_XRCD=0"
done
half_bound && echo "half bound"
ibprov status -v >"$OUT/half-bound.status"
before=$(uptime_ms)
apply half-bound --config "/run/$b.toml" "$second"
echo "half-bound took: $(($(uptime_ms) - before))"
echo "half-bound plan: $b"
facts "$second" >"$OUT/half-bound"
left
phase end
dmesg >"$OUT/dmesg"
