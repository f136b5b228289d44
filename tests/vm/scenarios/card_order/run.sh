set -u
. /usr/lib/bed/bringup.sh
all() { # a line for each VF there is, by the PF's address and the VF's index
	seen=0
	for card in 1 2 3; do
		for vf in 0 1; do
			[ -e "$pci/0001:0$card:00.0/virtfn$vf" ] || continue
			dir=$(readlink -f "$pci/0001:0$card:00.0/virtfn$vf")
			echo "$seen" $(ls "$dir/infiniband") $(ls "$dir/net")
			seen=$((seen + 1))
		done
	done
}
said() { journalctl --sync; journalctl --quiet --cursor-file=/run/said -o cat; } # since it was last asked
udevadm settle
all >"$OUT/boot"
phase "reload"
# Nobody but udev starts what applies the plans, each as its PF comes.
down
modprobe -a mlx5_ib ib_ipoib
planned() { for card in 1 2 3; do grep -q '"verdict": "done"' "/run/ibprov/pf/0001:0$card:00.0.json" || return 1; done; }
within 90 planned 2>/dev/null || echo "reload: not as planned"
udevadm settle
all >"$OUT/reload"
within 60 at_rest || echo "reload: units are not at rest"

# As a reset of the firmware does it: the modules stay loaded. A reload hides late PFs, since
# udev tells of no PF before the last of the modules has looked at all of them.
phase "rebind"
for card in 1 2 3; do
	echo 0 >"$pci/0001:0$card:00.0/sriov_numvfs"
	echo "0001:0$card:00.0" >/sys/bus/pci/drivers/mlx5_core/unbind
done
udevadm settle
within 60 at_rest || echo "rebind: units are not at rest"
rm /run/ibprov/pf/*.json
said >/dev/null
for card in 1 2 3; do echo "0001:0$card:00.0" >/sys/bus/pci/drivers/mlx5_core/bind; done
within 90 planned 2>/dev/null || echo "rebind: not as planned"
udevadm settle
all >"$OUT/rebind"
within 60 at_rest || echo "rebind: units are not at rest after it"
said >"$OUT/rebind.log"

phase "the first is missing"
down
echo 1 >"$pci/$pf/remove"
said >/dev/null
systemctl start ibprov.service 2>/dev/null && echo "ibprov.service is content without $pf"
cp /run/ibprov/boot.json "$OUT/without.json"
within 60 at_rest || echo "without $pf: units are not at rest"
said >"$OUT/without.log"
all >"$OUT/without"
dmesg >"$OUT/dmesg"
true
