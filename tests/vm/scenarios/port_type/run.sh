set -u
. /usr/lib/bed/iface.sh
. /usr/lib/bed/vf.sh
one=0001:01:00.0 two=0001:02:00.0
has_rdma() { ls "$pci/$1/infiniband" >/dev/null 2>&1; }
type() { # ADDRESS ib|eth: as with the firmware's setting and a reset
	knobs "$1/link_type=$2"
	echo "$1" >/sys/bus/pci/drivers/mlx5_core/unbind
	echo "$1" >/sys/bus/pci/drivers/mlx5_core/bind
	within 60 has_rdma "$1"
	udevadm settle
}
# As another boot would find it.
found_anew() { # ADDRESS
	echo 1 >"$pci/$1/remove"
	echo 1 >/sys/bus/pci/rescan
	within 60 has_rdma "$1"
	udevadm settle
}
told() { # NAME
	name=$1
	ibprov status --format json >"$OUT/$name.json"
	code=$?
	ibprov status -v >"$OUT/$name.status"
	echo "$name status: $code"
	cat "$pci/$one/class" "$pci/$two/class" | tr '\n' ' ' >"$OUT/$name.classes"
}
again() { # NAME
	before=$(uptime_ms)
	systemctl restart ibprov.service
	echo "$1 boot: $(systemctl is-active ibprov.service) $(($(uptime_ms) - before))"
	cp /run/ibprov/boot.json "$OUT/$1.boot.json"
}
online() { # NAME ADDRESS
	before=$(uptime_ms)
	ibprov wait-online --timeout 90s "$2" >"$OUT/$1.online" 2>&1
	code=$?
	echo "$1 online: $code $(($(uptime_ms) - before))"
}

phase "1. as it has booted"
udevadm settle
told booted
online booted $two

phase "2. the second becomes an InfiniBand port"
type $two ib
udevadm wait --timeout=60 /sys/class/net/ib1
udevadm settle
again both
told both

phase "3. the first becomes an Ethernet port"
type $one eth
again other
told other
online other $one
ibprov iface ib0 >"$OUT/other.iface" 2>&1
echo "other iface: $?"
printf '[[pf]]\npci = "%s"\nvfs = 2\nguid.template = "02:00:00:70:{pf:8}:{kind:8}:{vf:16}"\n' $one >/run/plan.toml
ibprov plan --config /run/plan.toml >"$OUT/other.plan" 2>&1
echo "other plan: $?"

phase "4. and is found anew"
found_anew $one
again found
told found

phase "5. and back"
type $one ib
found_anew $one
udevadm wait --timeout=60 /sys/class/net/ib0
udevadm settle
again back
told back
dmesg >"$OUT/dmesg"
phase end
true
