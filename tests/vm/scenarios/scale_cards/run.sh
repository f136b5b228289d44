set -u
. /usr/lib/bed/vf.sh
udevadm settle
# Some starts more, when all is at rest.
sleep 5
systemctl stop prober.service
cp /run/probes "$OUT/probes"
ls /sys/class/infiniband >"$OUT/devices"
cat /sys/class/infiniband/*/ports/1/link_layer | sort | uniq -c >"$OUT/layers"
[ ! -e /run/ibprov/boot.json ] || { ibprov status >"$OUT/status" 2>&1; echo "status: $?"; }
systemd-analyze --no-pager blame | head -n 15 >"$OUT/blame"
dmesg >"$OUT/dmesg"
true
