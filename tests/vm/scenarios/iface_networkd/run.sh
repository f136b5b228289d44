. /usr/lib/bed/iface.sh
scene before ib0
scene meanwhile ib1
# The P_Key children were left to networkd too, and are looked at again. NetworkManager has no
# profile for them.
if ! command -v nmcli >/dev/null; then
	children=$(cd /sys/class/net && echo ib0.*)
	are_up() { for child in $children; do grep -q '"bring_up": "up"' "$(outcome "$child")" || return 1; done; }
	within 60 are_up || echo "not all children were looked at again"
	for child in $children; do
		looked "$child"
		echo "child $child: $(cat "/sys/class/net/$child/mtu")"
	done
	# Sixteen more at once.
	begin=$(now)
	for pkey in 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f 20; do
		echo "link add link ib0 name ib0.80$pkey type ipoib pkey 0x80$pkey"
	done >/run/sixteen
	ip -batch /run/sixteen
	children=$(cd /sys/class/net && echo ib0.80[12]?)
	for child in $children; do child_ended "$child"; done
	echo "sixteen took: $(($(now) - begin)) s"
	for child in $children; do grep -h '"bring_up"\|"configured":' "$(outcome "$child")"; done | sort | uniq -c >"$OUT/sixteen"
fi
/usr/lib/bed/appear 3
scene late ib2
echo 0001:03:00.0 >/sys/bus/pci/drivers/mlx5_core/unbind
/usr/lib/bed/appear 3
scene rebound ib2
/usr/lib/bed/appear 4
scene missed ib3
ibprov iface ib0 --dry-run >"$OUT/dry-run"
ibprov iface ib0 --dry-run --no-bus >"$OUT/dry-run.no-bus"
ibprov iface ib3 --dry-run >"$OUT/dry-run.missed"
networkctl --no-pager list >"$OUT/networkctl"
true
