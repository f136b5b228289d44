set -u
. /usr/lib/bed/bringup.sh
late=0001:02:00.0
all() { # a line for each PF and VF there is
	for function in "$pf" "$pf"/virtfn0 "$pf"/virtfn1 "$pf"/virtfn2 "$pf"/virtfn3 "$pf"/virtfn4 "$pf"/virtfn5 "$pf"/virtfn6 "$pf"/virtfn7 "$late"; do
		dir=$(readlink -f "$pci/$function")
		echo "$function" $(ls "$dir/infiniband") $(ls "$dir/net")
	done
}
planned() { grep -qs '"verdict": "done"' "/run/ibprov/pf/$pf.json"; }
# As a reset of the firmware does it: the modules stay loaded. While modules are loaded, udev tells
# of no PF before the last one is there.
unbound() {
	echo 0 >"$pci/$pf/sriov_numvfs"
	for card in $pf $late; do echo "$card" >/sys/bus/pci/drivers/mlx5_core/unbind; done
	udevadm settle
	within 60 at_rest || echo "units are not at rest"
	rm /run/ibprov/pf/*.json
}
bound() { for card in $pf $late; do echo "$card" >/sys/bus/pci/drivers/mlx5_core/bind; done; }
over() { # NAME
	within 120 planned || echo "$1: not as planned"
	udevadm settle
	all >"$OUT/$1"
	within 60 at_rest || echo "$1: units are not at rest"
}
knobs "$late/slow.INIT_HCA=30000"

phase boot
systemctl stop ibprov.service
unbound
systemctl start --no-block ibprov.service
bound
over boot

phase rebind
unbound
bound
over rebind
dmesg >"$OUT/dmesg"
true
