set -u
unit() { systemctl show -p ActiveState,SubState,Result,ExecMainStatus,StatusText ibprov-guests.service | sort; }
domains() { virsh --quiet list --name | grep . | sort; }
until_active() { until virsh --quiet list --name | grep -qx "$1"; do :; done; }
run() { # NAME: of a configuration; report and exit code of a run by hand
	ibprov --config "/run/$1.toml" guests --format json >"$OUT/$1.json" 2>"$OUT/$1.err"
	echo "$1: $?"
}

# The boot is over, and one guest waits for its VF.
unit >"$OUT/boot.unit"
cp /run/ibprov/guests.json "$OUT/boot.json"
domains >"$OUT/boot.domains"
sort -n /run/starting-at-once | tail -n 1 >"$OUT/at-once"
systemctl show -p ActiveState deep.service vm@1.service >"$OUT/boot.units"
in_unit() { nsenter --mount --target "$(systemctl show -p MainPID --value ibprov-guests.service)" "$@"; }
in_unit ibprov guests --status >"$OUT/status" 2>"$OUT/status.err"
echo "status: $?"
in_unit ibprov guests --status --format json >"$OUT/status.json"
in_unit ibprov guests --dry-run >"$OUT/dry-run"

# It is killed, as for want of memory, while that guest waits.
kill -KILL "$(systemctl show -p MainPID --value ibprov-guests.service)"
is_back() { [ "$(systemctl show -p NRestarts --value ibprov-guests.service)" = 1 ] && unit | tr '\n' ' ' | grep -q 'domain late waits.*SubState=running'; }
until is_back || systemctl --quiet is-failed ibprov-guests.service; do :; done
unit >"$OUT/killed.unit"
systemctl start ibprov-guests.service

# Its VF becomes right; an apply that ends lets go of a lock.
pgrep_qemu() { for p in /proc/[0-9]*/comm; do grep -q ^qemu-system "$p" 2>/dev/null && basename "$(dirname "$p")"; done | sort; }
pgrep_qemu >"$OUT/qemu.before"
read -r before _ </proc/uptime
echo Follow >/run/card/pci/devices/0000:4b:00.0/sriov/1/policy
echo >/run/ibprov/lock/0000:4b:00.0
until_active late
read -r after _ </proc/uptime
echo "$before $after" >"$OUT/late.times"
while [ "$(systemctl show -p ActiveState --value ibprov-guests.service)" = active ]; do :; done
unit >"$OUT/end.unit"
cp /run/ibprov/guests.json "$OUT/end.json"

# Once more: what is up is left alone.
systemctl reset-failed ibprov-guests.service
systemctl start ibprov-guests.service
cp /run/ibprov/guests.json "$OUT/again.json"
pgrep_qemu >"$OUT/qemu.after"

# libvirt dies while it starts a domain, and comes back by its socket.
touch /run/crash-libvirt
systemctl show -p MainPID --value libvirtd.service >/run/libvirtd.pid
printf '[[guest]]\ndomain = "crash"\n' >/run/crash.toml
run crash
[ -e /run/crash-libvirt ] && echo "libvirt did not crash"

# A guest that counts as up when its agent answers.
cat >/run/agent.toml <<END
[[guest]]
domain = "answers"
ready = "agent"
[[guest]]
domain = "mute"
ready = "agent"
timeout = "6s"
[[guest]]
domain = "deaf"
ready = "agent"
END
run agent

# A PF that is planned: VF 0 is right, VF 1 cannot be made so, its file being
# read-only here. A qemu hook goes by what apply has found.
pf=/run/card/pci/devices/0000:4b:00.0
guids='guid.node.list = ["0200:0000:0012:0000", "0200:0000:0012:0001"]
guid.port.list = ["0200:0000:0012:0100", "0200:0000:0012:0101"]'
printf '[[pf]]\npci = "0000:4b:00.0"\nvfs = 2\ndriver = "vfio-pci"\n%s\n' "$guids" >/run/pf.toml
card() { unshare --mount sh -c 'mount --bind -o ro /run/card /sys/bus; exec "$@"' sh "$@"; }
start() { virsh --quiet start -- "$1" >"$OUT/start.$1" 2>&1; }
cat /usr/share/doc/ibprov/examples/libvirt-qemu-hook >/etc/libvirt/hooks/qemu.d/ibprov
rm -f /run/ibprov/pf/0000:4b:00.0.json
start handed
mv "$OUT/start.handed" "$OUT/start.unknown"
echo Down >"$pf/sriov/1/policy"
card ibprov --config /run/pf.toml apply 0000:4b:00.0 >"$OUT/apply" 2>&1
echo "apply: $?"
cp /run/ibprov/pf/0000:4b:00.0.json "$OUT/pf.json"
start handed
start eager
start plain && echo "plain: started"

# The PF's driver hangs, and so does the child that asks it: who only looks does not.
read -r before _ </proc/uptime
card /usr/lib/bed/hang worker ibprov --config /run/pf.toml plan >"$OUT/hung" 2>&1
echo "hung: $?"
read -r after _ </proc/uptime
echo "$before $after" >"$OUT/hung.times"

# And so it does while a guest waits for 12 s, and something happens all the time: how many
# children there are then, and how many reads there were.
printf '[[guest]]\nunit = "vm@3.service"\nvfs = ["0000:4b:00.0/0"]\n' >/run/silent.toml
card /usr/lib/bed/hang worker ibprov --config /run/silent.toml guests >"$OUT/silent.out" 2>&1 &
runs=$!
until grep -q 'vm@3.service' /run/ibprov/guests.json; do :; done
n=0
while [ $n -lt 120 ]; do
	echo >/run/ibprov/lock/0000:4b:00.0
	sleep 0.1
	n=$((n + 1))
done
waits= children=0
for process in /proc/[0-9]*; do
	case "$(tr '\0' ' ' <"$process/cmdline")" in
	*/hang\ *) ;;
	*' worker ') children=$((children + 1)) ;;
	*'/run/silent.toml guests ') waits=${process#/proc/} ;;
	esac
done 2>/dev/null
reads=$(awk '$1 == "syscr:" { print $2 }' "/proc/$waits/io")
echo "$children $reads" >"$OUT/silent"
cp /run/ibprov/guests.json "$OUT/silent.json"
kill "$waits"
wait "$runs"
echo "silent: $?"

# libvirt is not there, in two ways.
printf '[[guest]]\ndomain = "first"\ntimeout = "3s"\n[[guest]]\nunit = "vm@2.service"\n' >/run/away.toml
systemctl stop libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket libvirtd.service
run away
printf '[[guest]]\ndomain = "first"\n' >/run/none.toml
unshare --mount sh -c 'mount --bind /dev/null /usr/bin/virsh; exec ibprov --config /run/none.toml guests' 2>"$OUT/none.err"
echo "none: $?"

# libvirt's own test driver, in virsh alone.
printf '[guests]\nconnection = "test:///default"\n[[guest]]\ndomain = "test"\n[[guest]]\ndomain = "ghost"\n' >/run/driver.toml
run driver
printf '' >/run/empty.toml
run empty
