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
