set -u
. /usr/lib/bed/vf.sh
. /usr/lib/bed/names.sh
udevadm settle

phase fresh
names 0001:01:00.0 >"$OUT/patterns"
ibprov plan >"$OUT/plan"
ibprov plan --format json >"$OUT/plan.json"
apply again

# Somebody else takes a VF from its driver and gives it back.
phase "by hand"
echo 0001:01:00.3 >/sys/bus/pci/drivers/mlx5_core/unbind
echo 0001:01:00.3 >/sys/bus/pci/drivers/mlx5_core/bind
udevadm settle
names 0001:01:00.0 >"$OUT/by-hand"

# In the boot the VFs of both PFs come, and those of the first have numbers of the kernel's
# until they get their names.
phase "in order"
names 0001:02:00.0 >"$OUT/in-order.boot"
free 0001:02:00.0
apply in-order 0001:02:00.0
names 0001:02:00.0 >"$OUT/in-order"

# What comes at the same time has whatever names there are.
phase parallel
sed -i '$ a bind = "parallel"' /etc/ibprov/ibprov.toml
free 0001:02:00.0
apply parallel 0001:02:00.0
dmesg >"$OUT/dmesg"
true
