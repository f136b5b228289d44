. /usr/lib/bed/iface.sh
ib0() { readlink -f /sys/class/net/ib0; }
# With its device unit, what udev asks for is queued.
no_jobs() { ! systemctl list-jobs --plain --no-legend | grep -q ibprov; }
# look NAME: a line once systemd has heard of ib0, and with that has queued what udev asks for.
look() {
	udevadm wait --timeout=60 /sys/class/net/ib0
	udevadm settle
	within 40 is active "$(systemd-escape -p --suffix=device "$(ib0)")"
	within 40 no_jobs
	echo "$1: $(systemctl is-active "$(unit ib0)") umcast=$(cat /sys/class/net/ib0/umcast) vfs=$(cat /sys/bus/pci/devices/0001:01:00.0/sriov_numvfs)"
}
anew() {
	modprobe -r ib_ipoib
	modprobe ib_ipoib
}
look boot
systemctl list-units --plain --no-legend --state=active,activating,deactivating,failed 'ibprov*' | cut -d' ' -f1 >"$OUT/units"
journalctl -b -o cat | grep ibprov >"$OUT/lines"
ls /run/ibprov >"$OUT/run" 2>&1
ibprov status --format json >"$OUT/status.json"
anew
look anew
journalctl -b -o cat | grep -c 'ibprov.service is not enabled' >"$OUT/count"
# Enabled on a running system, with a configuration for the next boot.
systemctl enable --runtime --quiet ibprov.service
ip addr add 10.9.0.1/24 dev ib0
ip link set ib0 up
udevadm trigger --subsystem-match=net --subsystem-match=pci --action=change
look triggered
anew
look for-next-boot
systemctl list-units --plain --no-legend --state=active,failed 'ibprov-iface@*' 'ibprov-pf@*' >"$OUT/acted"
journalctl -b -o cat | grep 'ibprov.service has not begun' >"$OUT/skipped"
ip addr add 10.9.0.1/24 dev ib0
ip link set ib0 up
systemctl start ibprov.service
look by-hand-in-use
mtu() { echo "mtu $1: $(cat /sys/class/net/ib0/mtu)"; }
mtu start
ibprov iface ib0 --settings-only >"$OUT/deferred" 2>&1
mtu by-hand
cp /run/ibprov/boot.json "$OUT/in-use.json"
systemctl stop ibprov.service
systemctl disable --runtime --quiet ibprov.service
# What comes while `ibprov boot` is running is set.
modprobe -r ib_ipoib
systemctl start ibprov.service
look by-hand
ls /run/ibprov/boot.running
anew
look after-it
# A boot that was killed is not running.
systemctl stop ibprov.service
mkdir -p /etc/ibprov/ibprov.d
printf '[[port]]\npci = "0009:01:00.0"\n' >/etc/ibprov/ibprov.d/absent.toml
systemctl start --no-block ibprov.service
within 30 test -e /run/ibprov/boot.running || echo "boot does not run"
kill -9 "$(systemctl show -p MainPID --value ibprov.service)"
within 20 is failed ibprov.service
rm /etc/ibprov/ibprov.d/absent.toml
anew
look killed
systemctl enable --runtime --quiet ibprov.service
anew
look enabled
systemctl mask --quiet ibprov.service
anew
look masked
systemctl unmask --quiet ibprov.service
systemctl disable --runtime --quiet ibprov.service
anew
look disabled
true
