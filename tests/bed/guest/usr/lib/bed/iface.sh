# Helpers of the scenarios about interfaces, to be sourced. Nothing here starts an
# instance.
now() { read -r up rest </proc/uptime && echo "${up%.*}"; }
unit() { systemd-escape -p --template=ibprov-iface@.service "$(readlink -f "/sys/class/net/$1")"; }
# within SECONDS COMMAND...: until it succeeds, for what has no event.
within() {
	until=$(($(now) + $1))
	shift
	until "$@"; do
		[ "$(now)" -lt $until ] || return 1
		sleep 0.5
	done
}
# is STATE UNIT
is() { [ "$(systemctl is-active "$2")" = "$1" ]; }
# The unit is looked for at each round: a name may get to another interface.
has_ended() {
	case $(systemctl is-active "$(unit "$1")") in
	active | failed) ;;
	*) return 1 ;;
	esac
}
# ended INTERFACE: wait until its instance has ended.
ended() {
	udevadm wait --timeout=20 "/sys/class/net/$1"
	udevadm settle
	within 40 has_ended "$1"
}
# child_ended CHILD: wait until the run for it has ended. A P_Key child has no instance, and its
# outcome says under which name it was set up.
outcome() { echo "/run/ibprov/ports/$(cat "/sys/class/net/$1/ifindex").json"; }
is_through() {
	outcome=$(outcome "$1")
	grep -q "\"netdev\": \"$1\"" "$outcome" && ! grep -q '"bring_up": "\(pending\|not-asked\)"' "$outcome"
} 2>/dev/null
child_ended() {
	udevadm wait --timeout=20 "/sys/class/net/$1"
	within 60 is_through "$1"
}
# is_set CHILD: whether its settings are made; nothing if no run has ended.
is_set() { ! is_through "$1" || sed -n 's/^  "configured": \(.*\),$/\1/p' "$(outcome "$1")"; }
# looked INTERFACE: wait until what its instance has left for later has been done.
later() { systemd-escape -p --template=ibprov-iface-later@.service "$(readlink -f "/sys/class/net/$1")"; }
has_looked() {
	looks=$(later "$1")
	case $(systemctl show -p Job --value "$looks") in [1-9]*) return 1 ;; esac
	[ "$(systemctl is-active "$looks")" != active ]
}
looked() { within 150 has_looked "$1"; }
# A line: the scene's name, the instance's state, the interface, and where it is
# counted how often it was brought up.
scene() { # NAME INTERFACE
	ended "$2"
	echo "$1: $(systemctl is-active "$(unit "$2")") umcast=$(cat "/sys/class/net/$2/umcast") $(ip -o -4 addr show dev "$2" | awk '{ print $4 }')$(ups "$2")"
	cp /run/ibprov/ports/"$(cat "/sys/class/net/$2/ifindex")".json "$OUT/$1.json"
}
ups() { [ ! -e /run/ups ] || echo " ups=$(grep -cx -- "$1" /run/ups)"; }
