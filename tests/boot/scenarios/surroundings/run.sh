set -u
outcome() { # NAME: of the unit's last run
	systemctl show -p ActiveState,Result,ExecMainStatus ibprov.service >"$OUT/$1.unit"
	id=$(systemctl show -p InvocationID --value ibprov.service)
	journalctl --sync
	journalctl -o json --no-pager _SYSTEMD_INVOCATION_ID="$id" >"$OUT/$1.journal"
	cp /run/ibprov/boot.json "$OUT/$1.json" 2>/dev/null
}
with() { # LINE...: of a [Service] section, for the next run
	mkdir -p /run/systemd/system/ibprov.service.d
	{ echo '[Service]'; printf '%s\n' "$@"; } >/run/systemd/system/ibprov.service.d/taken-away.conf
	systemctl daemon-reload
}

outcome boot
systemctl show -p ActiveState networking.service >"$OUT/networking"

# A card as sysfs shows it, with a netdev that no udevd has processed.
card=/run/card/pci/devices/0000:4b:00.0
put() { mkdir -p "$(dirname "$card/$1")"; echo "$2" >"$card/$1"; }
put class 0x020700
put vendor 0x15b3
put device 0x101b
put modalias pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00
ln -s ../../drivers/mlx5_core "$card/driver"
put infiniband/mlx5_0/node_guid b859:9f03:0012:a480
put infiniband/mlx5_0/ports/1/link_layer InfiniBand
put infiniband/mlx5_0/ports/1/gids/0 fe80:0000:0000:0000:b859:9f03:0012:a480
put net/ib0/type 32
put net/ib0/ifindex 7
put net/ib0/dev_port 0
put net/ib0/address 00:00:10:49:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:12:a4:80
# By far longer than anything else takes.
echo 'ibprov.timeout=60' >/run/cmdline
with BindReadOnlyPaths=/run/card:/sys/bus BindReadOnlyPaths=/run/cmdline:/proc/cmdline
systemctl restart ibprov.service
outcome no-udevd

# It waits for udevd's name of the netdev: the first run of the unit, a later one, one by hand.
mkdir -p /run/udev
touch /run/udev/control
judge() { # NAME UNIT
	until [ -e /run/ibprov/boot.running ]; do :; done
	line=$(systemd-run --quiet --wait --pipe --property=BindReadOnlyPaths=/run/card:/sys/bus ibprov health --for npd)
	echo "$1: $? ${line%%;*}" >>"$OUT/in-progress"
	systemctl kill --signal=TERM "$2"
	while [ -e /run/ibprov/boot.running ]; do :; done
}
rm -r /run/ibprov
for run in first later; do
	systemctl restart --no-block ibprov.service
	judge $run ibprov.service
done
rm -r /run/ibprov
systemd-run --quiet --unit=by-hand --property=BindReadOnlyPaths=/run/card:/sys/bus ibprov boot
judge by-hand by-hand.service
rm /run/udev/control

rm -r /run/ibprov
with RuntimeDirectory= ReadOnlyPaths=/run
systemctl restart ibprov.service
outcome read-only

with TemporaryFileSystem=/run/systemd
systemctl restart ibprov.service
outcome no-sockets

echo 'quiet ibprov.timeout=soon ibprov.timeout=1' >/run/cmdline
with BindReadOnlyPaths=/run/cmdline:/proc/cmdline
systemctl restart ibprov.service
outcome deadline

# Both wait far longer than this takes.
echo 'ibprov.timeout=600' >/run/cmdline
with BindReadOnlyPaths=/run/cmdline:/proc/cmdline
printf '[boot]\ntimeout = "10min"\n[[port]]\npci = "0000:4b:00.0"\n' >/run/holder.toml
ibprov --config /run/holder.toml boot 2>"$OUT/holder.stderr" &
holder=$!
until [ "$(cat /run/ibprov/lock/boot)" = "$holder" ]; do :; done
systemctl restart --no-block ibprov.service
until systemctl show -p StatusText ibprov.service | grep "waiting for another.*process $holder" >"$OUT/waiting"; do :; done
systemctl kill --signal=TERM ibprov.service
while [ "$(systemctl show -p ActiveState --value ibprov.service)" = activating ]; do :; done
outcome signal
kill -TERM "$holder" && echo "the first goes on" >"$OUT/holder"
wait "$holder"
echo "until a signal ends it with $?" >>"$OUT/holder"

# Only the unit's run leaves a report of wait-online, whatever its command line.
mkdir -p /run/systemd/system/ibprov-wait-online.service.d
printf '[Unit]\nConditionVirtualization=\n[Service]\nExecStart=\nExecStart=/usr/sbin/ibprov wait-online --timeout 1s\n' \
	>/run/systemd/system/ibprov-wait-online.service.d/site.conf
systemctl daemon-reload
systemctl start ibprov-wait-online.service
cp /run/ibprov/online.json "$OUT/online.json"
ibprov wait-online ib7 --timeout 1s >"$OUT/by-hand" 2>&1
echo $? >"$OUT/by-hand.code"
systemd-run --quiet --wait --unit=prolog ibprov wait-online ib7 --timeout 1s
cp /run/ibprov/online.json "$OUT/online-later.json"
journalctl --sync
ibprov check --format json >"$OUT/check.json" 2>"$OUT/check.err"

setpriv --reuid=65534 --clear-groups ibprov boot >"$OUT/not-root.out" 2>"$OUT/not-root.err"
echo $? >"$OUT/not-root.code"
