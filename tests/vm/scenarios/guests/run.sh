set -u
cp /run/ibprov/guests.json "$OUT/boot.json"
systemctl show -p ActiveState,StatusText ibprov-guests.service >"$OUT/unit"
systemctl is-active vm@0.service vm@1.service vm@2.service >"$OUT/active"
ibprov guests --status >"$OUT/status"
echo "status: $?"

# The VF is repaired, and the plan is applied once more.
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
echo "0001:01:00.2/fail.INIT_HCA=9999" >/sys/kernel/debug/ibcard/set
mkfifo /run/up-1
udevadm monitor --kernel --subsystem-match=net >"$OUT/uevents" &
monitor=$!
until grep -q ^KERNEL "$OUT/uevents"; do :; done
ibprov apply >"$OUT/apply" 2>&1
echo "apply: $?"
# The machine says that it is up.
read -r _ </run/up-1
kill "$monitor"
while [ "$(systemctl show -p SubState --value ibprov-guests.service)" = running ]; do :; done
systemctl show -p ActiveState,SubState,StatusText ibprov-guests.service >"$OUT/end.unit"
cp /run/ibprov/guests.json "$OUT/end.json"
