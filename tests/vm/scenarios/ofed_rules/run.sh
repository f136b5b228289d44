. /usr/lib/bed/iface.sh
card() { echo "0001:0$1:00.0"; }
vanish() { card "$1" >/sys/bus/pci/drivers/mlx5_core/unbind; }
appear() { card "$1" >/sys/bus/pci/drivers/mlx5_core/bind; }
mtu() { cat "/sys/class/net/$1/mtu"; }

systemctl show -p Result --value networking.service >"$OUT/networking"
ended ib0
ended ib1
for name in ib0 ib1; do
	echo "booted $name: $(systemctl is-active "$(unit $name)") $(mtu $name) $(ip -o -4 addr show dev $name | awk '{ print $4 }')"
	cp "/run/ibprov/ports/$(cat /sys/class/net/$name/ifindex).json" "$OUT/$name.json"
done
for verb in status check; do
	ibprov $verb >"$OUT/$verb" 2>&1
	echo "$verb: $?"
done
ibprov import openib-conf >"$OUT/import" 2>&1
echo "import: $?"

# A card that is bound anew: the agent is at work, and does all of it this time. Before
# its unit has begun, and while it is at work, the interface is not as it will be.
vanish 1
appear 1
udevadm wait --timeout=20 /sys/class/net/ib0
within 20 is active mlnx_interface_mgr@ib0.service
ibprov status --format json >"$OUT/at-work.json"
echo "at work: $? $(systemctl is-active mlnx_interface_mgr@ib0.service)"
ended ib0
echo "rebound: $(systemctl is-active "$(unit ib0)") $(mtu ib0) $(ip -o -4 addr show dev ib0 | awk '{ print $4 }')$(ups ib0)"
ibprov status --format json >"$OUT/rebound.json"
echo "after: $?"

# The remedy, as it is printed.
runs=$(grep -cx ib0 /run/mgr)
sh -c "$(sed -n 's/.*\(ln -sf \/dev\/null .*--reload\).*/\1/p' "$OUT/import")"
vanish 1
appear 1
ended ib0
echo "masked: $(systemctl is-active "$(unit ib0)") $(mtu ib0) runs $runs $(grep -cx ib0 /run/mgr)"
ibprov status -v >"$OUT/masked" 2>&1
echo "masked status: $?"
ibprov import openib-conf >"$OUT/masked.import" 2>&1
dmesg >"$OUT/dmesg"
true
