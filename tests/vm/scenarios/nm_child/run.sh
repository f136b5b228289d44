set -u
. /usr/lib/bed/iface.sh
keep=/var/lib/bed
mkdir -p $keep
as() { # NAME COMMAND...: a line with its exit code, and a file with what it said
	name=$1
	shift
	"$@" >"$keep/$name" 2>"$keep/$name.stderr"
	echo "$name: $?"
}
profiles=/etc/NetworkManager/system-connections
address() { ip -o -4 addr show dev "$1" 2>/dev/null | grep -q "$2"; }
at_rest() { [ -z "$(systemctl list-jobs --no-legend)" ]; }
look() {
	within 60 address ib0 10.1.0.1
	within 60 address ib0.8001 10.2.0.1
	within 60 at_rest
	ended ib0
	echo "$1 ib0: $(is active "$(unit ib0)"; echo $?) $(ip -o -4 addr show dev ib0 | awk '{ print $4 }')"
	echo "$1 ib0.8001: $(cat /sys/class/net/ib0.8001/pkey) $(ip -o -4 addr show dev ib0.8001 | awk '{ print $4 }') $(cat /sys/class/net/ib0.8001/operstate)"
	nmcli -g NAME,DEVICE,STATE connection show --active >"$keep/$1.active"
	cp "/run/ibprov/ports/$(cat /sys/class/net/ib0/ifindex).json" "$keep/$1.iface"
	journalctl -b -o short-monotonic --no-pager >"$keep/$1.journal"
}
if [ ! -e $keep/second ]; then
	{
		look first
		as import-fabric ibprov import keyfile $profiles/fabric.nmconnection
		as import-storage ibprov import keyfile $profiles/storage.nmconnection
		mkdir -p /etc/ibprov/ibprov.d
		cp $keep/import-fabric /etc/ibprov/ibprov.d/10-fabric.toml
		cp $keep/import-storage /etc/ibprov/ibprov.d/20-storage.toml
		as config ibprov config check
	} >>$keep/stdout
	touch $keep/second
	systemctl reboot
	exec sleep infinity
fi
{
	look second
	as status ibprov status
	index=$(cat /sys/class/net/ib0.8001/ifindex)
	as again ibprov iface --dry-run ib0
	# NetworkManager takes the child away, and ibprov is asked for it before its profile is up.
	nmcli connection down storage >/dev/null
	as by-ibprov systemctl restart "$(unit ib0)"
	child() { [ -e /sys/class/net/ib0.8001 ]; }
	within 30 child
	echo "anew: $([ "$(cat /sys/class/net/ib0.8001/ifindex)" != "$index" ] && echo yes || echo no)"
	as by-nm nmcli connection up storage
	within 60 address ib0.8001 10.2.0.1
	echo "address: $?"
	as status-again ibprov status
} >>$keep/stdout
cp $keep/* "$OUT/"
cat $keep/stdout
