. /usr/lib/bed/iface.sh
scene before ib0
scene meanwhile ib1
# The P_Key children were left to networkd too, and are looked at again.
children="ib0.8001 ib0.8002 ib0.8003 ib0.8004 ib0.8005 ib0.8006"
outcome() { echo "/run/ibprov/ports/$(cat "/sys/class/net/$1/ifindex").json"; }
are_up() { for child in $children; do grep -q '"bring_up": "up"' "$(outcome "$child")" || return 1; done; }
within 60 are_up || echo "not all children were looked at again"
for child in $children; do
	looked "$child"
	echo "child $child: $(cat "/sys/class/net/$child/mtu") $(later "$child")"
done
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

# All turns at the bus are taken for longer than one is waited for.
all_taken() { ! flock --nonblock "/run/ibprov/bus/$1" true; }
held= turn=0
while [ $turn -lt 16 ]; do
	flock --no-fork "/run/ibprov/bus/$turn" sleep infinity &
	held="$held $!"
	within 20 all_taken $turn || echo "turn $turn is not taken"
	turn=$((turn + 1))
done
sed 's/^timeout = .*/timeout = "90s"/' /etc/ibprov/ibprov.toml >/run/longer.toml
ibprov iface ib0 --config /run/longer.toml 2>"$OUT/turns" &
last=$!
asks_again() { grep -q 'asking again' "$OUT/turns"; }
within 60 asks_again || echo "nobody asks again"
kill $held
wait $last || echo "ib0: exit status $?"
sed -n 's/^  "asked_by": "\(.*\)",$/\1/p' "/run/ibprov/ports/$(cat /sys/class/net/ib0/ifindex).json" >"$OUT/asked-by"
true
