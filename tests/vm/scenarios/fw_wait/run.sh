systemctl show -p Result --value networking.service >"$OUT/networking"
ip -br addr >"$OUT/addr"
sort -u /run/status-lines >"$OUT/status-lines"
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
# A card that goes away while boot waits for another.
echo "*/rdma_delay_ms=3600000" >/sys/kernel/debug/ibsim/mlx5_core/set
echo 0000:02:00.0 >/sys/bus/pci/drivers/mlx5_core/unbind
echo 0000:02:00.0 >/sys/bus/pci/drivers/mlx5_core/bind
systemctl restart --no-block ibprov.service
until systemctl show -p StatusText --value ibprov.service | grep -q "waiting for 0000:02:00.0"; do :; done
echo 1 >/sys/bus/pci/devices/0000:02:00.0/remove
# Joins the start that is under way.
systemctl start ibprov.service
echo "vanished: $?"
cp /run/ibprov/boot.json "$OUT/vanished.json"
