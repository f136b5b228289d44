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
udevadm settle
all >"$OUT/boot"
phase "reload"
# udev has the plan of each PF applied as it comes, and waits for none without a driver.
knobs "0001:03:00.0/slow.ALLOC_XRCD=0"
# Nobody but udev starts what applies the plans.
down
modprobe -a mlx5_ib ib_ipoib
planned() { for card in 1 2 3; do grep -q '"verdict": "right"' "/run/ibprov/pf/0001:0$card:00.0.json" || return 1; done; }
within 90 planned 2>/dev/null || echo "reload: not as planned"
udevadm settle
all >"$OUT/reload"

phase "the first is missing"
down
echo 1 >"$pci/$pf/remove"
systemctl start ibprov.service 2>/dev/null && echo "ibprov.service is content without $pf"
cp /run/ibprov/boot.json "$OUT/without.json"
all >"$OUT/without"
dmesg >"$OUT/dmesg"
true
