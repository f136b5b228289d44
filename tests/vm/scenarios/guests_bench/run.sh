set -u
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
echo "0001:01:00.2/fail.INIT_HCA=9999" >/sys/kernel/debug/ibcard/set
mkfifo /run/up-1
udevadm monitor --kernel --subsystem-match=net >"$OUT/uevents" &
monitor=$!
until grep -q ^KERNEL "$OUT/uevents"; do :; done
for round in 1 2 3 4 5 6 7; do
	# VF 1 has no driver, and its guest waits for it.
	ibprov apply >>"$OUT/apply" 2>&1
	read -r _ </run/up-1
	systemctl stop vm@1.service
	echo 0001:01:00.2 >/sys/bus/pci/drivers/mlx5_core/unbind
	systemctl restart ibprov-guests.service
done
kill "$monitor"
