set -u
state() { # NAME: what wait-online, status and a run for the parent come to
	ibprov wait-online --timeout "$2" --address ib0 ib0.8001 >"$OUT/$1.online" 2>&1
	echo "$1 online: $?"
	echo "$1 addresses: $(ip -4 -o addr show scope global | awk '$2 ~ /^ib/ { print $2, $4 }' | sort | tr '\n' ' ')"
	echo "$1 children: $(cd /sys/class/net && echo ib0.*)"
	ibprov iface ib0 --settings-only --format json >"$OUT/$1.json"
	echo "$1 iface: $?"
	ibprov status >"$OUT/$1.status"
	echo "$1 status: $?"
}
cp /run/ibprov/boot.json "$OUT/boot.json"
state boot 120s
echo "boot umcast: $(cat /sys/class/net/ib0.8001/umcast)"
nmcli connection down storage
state down 1s
ibprov check >"$OUT/down.check"
echo "down check: $?"
ibprov iface ib0 --dry-run >"$OUT/down.dry-run"
nmcli connection up storage
state up 60s
