set -u
. /usr/lib/bed/vf.sh
class=/sys/class/infiniband
on() { [ "$(cat "$class/$1/parent" 2>/dev/null)" = "$2" ]; } # DEVICE NETDEV
gid() { ibprov gid --port "$1/1" --type rocev2 --address "$2"; }
has_gid() { gid "$@" >/dev/null 2>&1; }
is_active() { [ "$(systemctl is-active "ibprov-iface@sys-devices-virtual-net-$1.service")" = active ]; }

phase "1. as it has booted"
cp /run/ibprov/boot.json "$OUT/first.json"
systemctl show -p Result --value ibprov.service >"$OUT/result"
within 60 on rxe0 eth1
echo "rxe0: $(cat $class/rxe0/parent)"
within 60 has_gid rxe0 10.7.0.1
index=$(gid rxe0 10.7.0.1)
echo "index: $index"
echo "entry: $(cat "$class/rxe0/ports/1/gid_attrs/types/$index") $(cat "$class/rxe0/ports/1/gids/$index")"
echo "state: $(cat $class/rxe0/ports/1/state)"
rdma link >"$OUT/rdma-link" 2>&1
ibprov status --gids >"$OUT/status" 2>&1
echo "status: $?"

# The netdev of the other has not come; rxe0 is waited for by itself.
ibprov wait-online --format json --timeout 2s >"$OUT/online.json" 2>"$OUT/online"
echo "online: $?"
ibprov wait-online --timeout 20s --address rxe0 >"$OUT/online-rxe0" 2>&1
echo "online-rxe0: $?"
ip link set eth1 down
ibprov wait-online --timeout 2s rxe0/1 >"$OUT/online-down" 2>&1
echo "online-down: $?"
ip link set eth1 up
within 60 has_gid rxe0 10.7.0.1

phase "2. two queue pairs of rxe0"
ip link set lo up
ibv_rc_pingpong -d rxe0 -g "$index" -n 100 >"$OUT/server" 2>&1 &
server=$!
# The server listens once it has made its queue pair.
client() { ibv_rc_pingpong -d rxe0 -g "$index" -n 100 127.0.0.1 >"$OUT/client" 2>&1; }
within 60 client
echo "client: $?"
wait $server
echo "server: $?"

phase "3. its netdev goes and comes back, and another comes late"
ip link del eth1
echo "gone: $(ls $class | tr '\n' ' ')"
ip link add eth1 type dummy
ip addr add 10.7.0.1/24 dev eth1
ip link set eth1 up
within 60 on rxe0 eth1
echo "again: $?"
within 60 is_active eth1
echo "unit: $?"
ip link add eth2 type dummy
ip link set eth2 up
within 60 on later eth2
echo "late: $?"
ip addr add 10.7.1.1/24 dev eth2
ibprov wait-online --timeout 20s >"$OUT/online-both" 2>&1
echo "online-both: $?"

phase "4. another run"
systemctl restart ibprov.service
echo "restart: $(systemctl is-active ibprov.service)"
cp /run/ibprov/boot.json "$OUT/second.json"

phase "5. what is refused"
ip netns add apart
ip link add eth3 netns apart type dummy
ip netns exec apart ibprov create-rxe apart0 eth3 >"$OUT/apart" 2>&1
echo "apart: $?"
ip link add link eth1 name eth1.7 type vlan id 7
ibprov create-rxe vlan0 eth1.7 >"$OUT/vlan" 2>&1
echo "vlan: $?"
ibprov create-rxe other eth1 >"$OUT/other" 2>&1
echo "other: $?"

phase "6. removed from the configuration"
: >/etc/ibprov/ibprov.toml
systemctl restart ibprov.service
ibprov status >"$OUT/removed" 2>&1
echo "removed: $?"
echo "left: $(cat $class/rxe0/parent)"
journalctl -b -o short-monotonic >"$OUT/journal"
phase end
true
