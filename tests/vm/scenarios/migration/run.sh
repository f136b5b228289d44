# One step in each boot, after a look at what this boot has brought.
. /usr/lib/bed/iface.sh
bed=/usr/lib/bed
keep=/var/lib/bed
mkdir -p "$keep"
step=$(cat "$keep/step" 2>/dev/null || echo 0)
# Both agents for interfaces are through.
through() {
	! systemctl list-jobs --plain --no-legend | grep -q 'mlnx_interface_mgr\|ibprov' &&
		! is active mlnx_interface_mgr@ib0.service
}
carrier() { [ "$(cat /sys/class/net/ib0/carrier)" = 1 ]; }
look() {
	within 40 through || :
	within 20 carrier 2>/dev/null || :
	agent=$(systemctl show -p FragmentPath --value openibd.service)
	state=$(systemctl is-active openibd.service)
	echo "$1: ib0 $(ip -o -4 addr show dev ib0 | awk '{ print $4 }') mtu $(cat /sys/class/net/ib0/mtu)," \
		"networking $(systemctl show -p Result --value networking.service)," \
		"openibd ${agent##*/} $state, ibprov $(systemctl is-active ibprov.service)," \
		"manager $(journalctl -b -o cat | grep -c 'Setting up Mellanox network interface')"
	journalctl -b -o short-monotonic --no-pager >"$keep/$1.journal"
}
# as NAME COMMAND...: a line with its exit code, and a file with what it said.
as() {
	name=$1
	shift
	"$@" >"$keep/$name" 2>&1
	echo "$name: $?"
}
{
	case $step in
	0)
		as vendor-install $bed/vendor/install
		;;
	1)
		look vendor
		as installs dpkg -i $bed/ibprov_1.deb
		;;
	2)
		look installed
		as plans ibprov migrate
		as migrates ibprov migrate --apply
		;;
	3)
		look migrated
		as status ibprov status
		# A unit that earlier builds had is at work.
		gone=ibprov-children-later.service
		printf '[Service]\nExecStart=/bin/sleep infinity\n' >/usr/lib/systemd/system/$gone
		systemctl daemon-reload
		systemctl start $gone
		rm /usr/lib/systemd/system/$gone
		as upgrades dpkg -i $bed/ibprov_2.deb
		echo "forgotten: $(systemctl is-active $gone) $(systemctl show -P LoadState $gone)"
		;;
	4)
		look upgraded
		as reinstalls $bed/vendor/install
		;;
	5)
		look reinstalled
		as returns ibprov migrate --back --apply
		;;
	6)
		look back
		as migrates-again ibprov migrate --apply
		as removes dpkg -r ibprov
		;;
	7)
		look removed
		as installs-again dpkg -i $bed/ibprov_2.deb
		as migrates-third ibprov migrate --apply
		;;
	8)
		look migrated-again
		as downgrades dpkg --force-downgrade -i $bed/ibprov_1.deb
		;;
	9)
		look downgraded
		;;
	esac
} >>"$keep/stdout"
if [ "$step" = 9 ]; then
	cp "$keep"/* "$OUT/"
	cat "$keep/stdout"
	exit 0
fi
echo $((step + 1)) >"$keep/step"
# An orderly reboot: what is written is on the disk, and this is ended.
systemctl reboot
exec sleep infinity
