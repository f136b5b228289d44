# A line for each unit at each look: the look, the unit, its state, its main process.
set -u
. /usr/lib/bed/iface.sh
here=/run/systemd/system
shipped=/usr/lib/systemd/system
# What they are, in a container and for devices that have no unit.
for unit in ibprov.service ibprov-wait-online.service ibprov-guests.service ibprov-children.service ibprov-iface@.service ibprov-pf@.service; do
	sed 's/%i\.device//; /^ConditionVirtualization/d; /^ExecCondition/d' $shipped/$unit >$here/$unit
done
drop_in() { # UNIT LINE...: of its [Service] section
	mkdir -p $here/"$1".d
	name=$here/$1.d/bed.conf
	shift
	{ echo '[Service]'; printf '%s\n' "$@"; } >"$name"
}
printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c "read go </run/slow"\n' >$here/slow.service
mkfifo /run/slow

# The driver of this PF has not registered its RDMA device yet.
card=/run/card/pci/devices/0000:4b:00.0
put() { mkdir -p "${card:?}/${1%/*}" && echo "$2" >"$card/$1"; }
put ./class 0x020700
put ./vendor 0x15b3
put ./device 0x101b
put ./modalias pci:none
put ./sriov_totalvfs 8
ln -s ../../drivers/mlx5_core $card/driver
drop_in ibprov-pf@.service BindReadOnlyPaths=/run/card:/sys/bus
pf=ibprov-pf@sys-devices-0000:4b:00.0.service

# This interface has no carrier.
mkdir -p /run/systemd/network
printf '[Match]\nName=ib500\n\n[Network]\nAddress=10.0.0.1/24\nLinkLocalAddressing=no\n' >/run/systemd/network/50-ib500.network

# This one has a network service that is at its start.
printf 'auto ib501\niface ib501 inet manual\n\tup ip link set ib501 up\n' >/etc/network/interfaces
drop_in networking.service ExecStart= 'ExecStart=/bin/sh -c "read go </run/go; ifup -a"'
mkfifo /run/go

# Two programs hang: one when it opens its configuration, the other after it has read it, when
# it opens a file of modprobe.
hung() { # UNIT ARGUMENT...
	name=$1
	shift
	sed "/^ConditionVirtualization/d; s|^ExecStart=.*|ExecStart=/usr/sbin/ibprov $*|" $shipped/ibprov-wait-online.service >$here/"$name"
}
printf '[wait-online]\ntimeout = "1s"\n[[port]]\npci = "0000:4c:00.0"\n' | tee /run/hung.toml >/run/hung-later.toml
echo '# Nothing.' >/run/hung-later.conf
hung ibprov-hung.service --config /run/hung.toml wait-online
hung ibprov-hung-later.service --config /run/hung-later.toml wait-online
drop_in ibprov-hung-later.service BindReadOnlyPaths=/run/hung-later.conf:/etc/modprobe.d/hung-later.conf
mkfifo /run/deaf
/usr/lib/bed/deaf /run/hung.toml /run/hung-later.conf >/run/deaf &
read -r _ </run/deaf

systemctl daemon-reload
/usr/lib/bed/taps 500 600
systemctl start systemd-networkd.service
systemctl stop networking.service
systemctl start --no-block networking.service
is_seen() { grep -q '^ADMIN_STATE=configuring' /run/systemd/netif/links/"$(cat /sys/class/net/ib500/ifindex)"; }
within 20 is_seen || echo "systemd-networkd does not set ib500 up"
# udev has processed the one without carrier, which its instance and the unit for P_Key children
# wait for.
mkdir -p /run/udev/data
: >/run/udev/data/n"$(cat /sys/class/net/ib500/ifindex)"

# Those that come after ibprov.service begin before it.
waiting="ibprov-wait-online.service ibprov-guests.service $pf $(unit ib500) $(unit ib501) ibprov-children.service ibprov.service"
look() { # NAME
	for unit in $waiting; do
		echo "$1 $unit $(systemctl is-active "$unit") $(systemctl show -p MainPID --value "$unit")"
	done >>"$OUT/looks"
}
systemctl start --no-block ibprov-hung.service ibprov-hung-later.service
# shellcheck disable=SC2086 # words
for unit in $waiting; do
	systemctl start --no-block "$unit"
	within 20 is activating "$unit" || echo "$unit does not wait"
done
sleep 31
look before
systemctl daemon-reload
sleep 1
look reload
systemctl daemon-reexec
sleep 1
look reexec
for unit in ibprov-hung.service ibprov-hung-later.service; do
	within 20 is failed $unit || echo "$unit hangs"
	systemctl show -p Result,ExecMainStatus,ExecMainStartTimestampMonotonic,ExecMainExitTimestampMonotonic $unit >"$OUT/$unit"
done
# What they wait for comes.
echo go >/run/go
echo go >/run/slow
come() { is active ibprov-guests.service && is active "$(unit ib501)"; }
within 30 come || echo "what has come is not seen"
look come
begin=$(now)
# shellcheck disable=SC2086 # words
systemctl stop $waiting
echo "$(($(now) - begin))" >"$OUT/stopped"
look stopped
