. /usr/lib/bed/iface.sh
shown() { echo "$1: $(cat "/sys/class/net/$1/mode") $(cat "/sys/class/net/$1/mtu")"; }
scene before ib0
# NetworkManager can have it activated before a process has started: it is held until ib1 is
# set, and writes over that.
hold() { systemctl kill --signal="$1" NetworkManager.service 2>/dev/null || true; }
is_set() { [ "$(cat /sys/class/net/ib1/mode)" = connected ]; }
hold STOP
/usr/lib/bed/appear 2
within 20 is_set
hold CONT
scene late ib1
/usr/lib/bed/appear 3
scene agreed ib2
is_written() { [ "$(cat "/sys/class/net/$1/mtu")" != 65520 ]; }
within 20 is_written ib0
looked ib0
echo "read back: $(systemctl is-active "$(later ib0)")"
cp "/run/ibprov/ports/$(cat /sys/class/net/ib0/ifindex).json" "$OUT/read-back.json"
for netdev in ib0 ib1 ib2; do shown "$netdev"; done
ibprov iface ib1 --dry-run >"$OUT/dry-run"
ibprov status -v >"$OUT/status"
cp /run/ibprov/boot.json "$OUT/boot.json"
true
