#!/bin/sh
# A trial of ibprov on one node, from the first look to the undo: see docs/field-trial.md. As root:
#   field-trial.sh PACKAGE     begins; PACKAGE is ibprov's .deb or .rpm
#   field-trial.sh             goes on, after each reboot
#   field-trial.sh --undo      removes ibprov again, at any step
# It reboots nothing, and changes nothing before it has asked. CONSOLE=/dev/ttyS1 is the second
# console if the kernel's is not; NODE is the name that Slurm or Kubernetes has for the node.
set -eu
export LC_ALL=C
state=/var/lib/ibprov-field-trial
program=$state/program
config=/etc/ibprov/ibprov.d/50-field-trial.toml
script=$state/field-trial.sh

say() { printf '%s\n' "$@"; }
fail() {
	printf 'field-trial: %s\n' "$@" >&2
	exit 1
}
# ask QUESTION WORD: whether WORD is the answer.
ask() {
	printf '%s\nType %s to go on: ' "$1" "${3:-$2}"
	read -r answer || answer=
	say ""
	[ "$answer" = "$2" ]
}
boot_id() { cat /proc/sys/kernel/random/boot_id; }
# next STEP: what is done when this is run again, in another boot.
next() {
	boot_id >"$state/boot"
	echo "$1" >"$state/step"
	say "" "Now reboot this node (systemctl reboot), and then run: sh $script"
}
is_installed() { [ -e /usr/lib/ibprov/host ]; }
without() {
	say "To boot this node without ibprov, whatever happens: at the boot loader's menu press e, append" \
		"ibprov=0 to the line that begins with linux, and press Ctrl-X. To remove ibprov: sh $script --undo" ""
}

# --- what the node is used for

# PCI functions that are InfiniBand adapters by their class, or have an RDMA device.
functions() {
	for function in /sys/bus/pci/devices/*; do
		case $(cat "$function/class" 2>/dev/null) in
		0x0207*) say "$function" ;;
		*) [ ! -d "$function/infiniband" ] || say "$function" ;;
		esac
	done
}
# The netdevs of the adapters, and those that are above them.
netdevs() {
	{
		functions | while read -r function; do
			for netdev in "$function"/net/*; do [ ! -e "$netdev" ] || say "${netdev##*/}"; done
		done
		for type in /sys/class/net/*/type; do
			[ "$(cat "$type")" != 32 ] || { type=${type%/type} && say "${type##*/}"; }
		done
	} | while read -r netdev; do above "$netdev"; done | sort -u
}
above() {
	say "$1"
	for upper in "/sys/class/net/$1"/upper_*; do
		[ ! -e "$upper" ] || (above "${upper##*/upper_}")
	done
}
addresses() { for netdev in $(netdevs); do ip -o addr show dev "$netdev"; done | awk '{ sub("/.*", "", $4); print $4 }'; }
# Connections of TCP whose local address is one of the adapters': ssh, NFS, iSCSI, Lustre.
connections() {
	addresses >"$state/addresses"
	ss -Htn state established | awk -v list="$state/addresses" '
		BEGIN { while ((getline address < list) > 0) ours[address] = 1 }
		{ local = $3; sub(":[0-9]*$", "", local); gsub("[][]|%.*|^\\[?::ffff:", "", local) }
		local in ours { print "a TCP connection from " $3 " to " $4 }'
}
# Mounts of a server behind one of the adapters, connected or not.
mounts() {
	netdevs >"$state/netdevs"
	sed -n 's/^[^ ]* \([^ ]*\) .*[ ,]addr=\([^, ]*\).*/\1 \2/p' /proc/self/mounts | while read -r mounted address; do
		way=$(ip -o route get "$address" 2>&1 | sed -n 's/.* dev \([^ ]*\).*/\1/p')
		if [ -z "$way" ] || grep -qxF "$way" "$state/netdevs"; then say "the mount $mounted, of $address"; fi
	done
}
processes() { # WHAT PATTERN: by the names that the kernel has of them
	cat /proc/[0-9]*/comm 2>/dev/null | grep -E "^($2)" | sort -u | sed "s/^/$1: /" || :
}
slurm() {
	processes "a job of Slurm" slurmstepd
	[ -n "$(processes "" 'slurmd$')" ] || return 0
	name=${NODE:-$(uname -n)}
	case $(scontrol show node "${name%%.*}" 2>/dev/null | sed -n 's/^ *State=\([^ ]*\).*/\1/p') in
	*DRAIN* | *DOWN*) ;;
	*) say "slurmd, and Slurm does not say that ${name%%.*} is drained (scontrol update nodename=${name%%.*} state=drain reason=trial)" ;;
	esac
}
kubelet() {
	[ -n "$(processes "" 'kubelet$')" ] || return 0
	name=${NODE:-$(uname -n)}
	[ "$(kubectl --kubeconfig="${KUBECONFIG:-/etc/kubernetes/kubelet.conf}" get node "$name" -o 'jsonpath={.spec.unschedulable}' 2>/dev/null)" = true ] ||
		say "kubelet, and Kubernetes does not say that $name is drained (kubectl drain $name)"
}
# All that the adapters are in use for; nothing if they are not.
uses() {
	connections
	mounts
	processes "a subnet manager" 'opensm|ibsim'
	processes "a virtual machine" 'qemu|kvm$|cloud-hyperviso|firecracker|crosvm'
	slurm
	kubelet
	"$program" holders >"$state/holders" 2>&1 || sed 's/^/ibprov holders: /' "$state/holders"
}
refuse_if_in_use() {
	uses >"$state/uses"
	[ -s "$state/uses" ] || return 0
	sed 's/^/  /' "$state/uses" >&2
	fail "the adapters or the node are in use (above): end that, then run this again"
}

# --- what the node is like

# Files of /etc that change by themselves are left out.
snapshot() { # DIRECTORY
	mkdir -p "$1"
	systemctl list-unit-files --no-legend --no-pager | awk '$2 != "transient" { print $1, $2 }' | sort >"$1/unit-files"
	find /etc -xdev \( -path /etc/resolv.conf -o -path /etc/adjtime -o -path /etc/lvm/archive -o -path /etc/lvm/backup \) -prune \
		-o -printf '%M %U %G %p %l\n' | sort >"$1/etc"
	find /etc -xdev \( -path /etc/resolv.conf -o -path /etc/adjtime -o -path /etc/lvm/archive -o -path /etc/lvm/backup \) -prune \
		-o -type f -exec sha256sum {} + | sort -k 2 >"$1/etc-contents"
	for rules in /usr/lib/udev/rules.d /usr/local/lib/udev/rules.d /run/udev/rules.d; do
		[ ! -d "$rules" ] || find "$rules" -type f -exec sha256sum {} +
	done | sort -k 2 >"$1/udev-rules"
	for device in /sys/class/infiniband/* /sys/class/net/*; do
		[ ! -e "$device" ] || say "${device##*/} $(readlink -f "$device/device")"
	done | sort >"$1/names"
	{ ip route show table all && ip -6 route show table all; } | sed 's/ expires [0-9]*sec//' | sort >"$1/routes"
}
# Units that are active, but for those of sessions.
active_units() {
	systemctl list-units --state=active --type=service,socket,mount,target,path --no-legend --no-pager --plain |
		awk '{ print $1 }' | grep -vE '^(user@|user-runtime-dir@|run-)' | sort
}
came() { sed -n 's/^E: *USEC_INITIALIZED=//p' | awk '{ printf "%.1f s\n", $1 / 1e6 }'; }
# What a boot was like, in DIRECTORY; NAME for people.
measure() { # NAME DIRECTORY
	mkdir -p "$2"
	active_units >"$2/active-units"
	{
		say "$1: Linux $(uname -r)"
		systemd-analyze time 2>&1 | head -n 1
		for unit in network.target network-online.target multi-user.target ibprov.service; do
			systemctl show -p ActiveEnterTimestampMonotonic --value "$unit" |
				awk -v unit="$unit" '$1 > 0 { printf "%s: %.1f s\n", unit, $1 / 1e6 }'
		done
		while read -r name device; do
			case $device in /*) ;; *) continue ;; esac
			for class in infiniband net; do
				[ ! -e "/sys/class/$class/$name" ] || say "$name: seen by udev at $(udevadm info "/sys/class/$class/$name" | came)"
			done
		done <"$state/before/names"
		say "failed units: $(systemctl --failed --no-legend --plain | awk '{ print $1 }' | tr '\n' ' ')"
		"$program" status 2>&1 | head -n 1
	} >"$2/report"
	cat "$2/report"
	# The program has an exit status for what it finds; the archive is written in any case.
	"$program" status --format json >"$2/status.json" 2>&1 || :
	"$program" collect --anonymize --boots 0 "$2/collect.tar.gz" >"$2/collect" 2>&1 || :
}
compare_units() { # DIRECTORY: what was active in the boot without ibprov, and is not in this
	systemctl list-dependencies --plain --no-pager default.target | awk '{ print $NF }' | sort -u >"$state/wanted"
	comm -23 "$state/boot-0/active-units" "$1/active-units" | while read -r unit; do
		# Under another name, as openibd.service where ibprov has it.
		! systemctl --quiet is-active "$unit" || continue
		# D-Bus starts it when it is asked for, and it ends when it is not.
		if [ -z "$(systemctl show -p BusName --value "$unit")" ] || grep -qxF "$unit" "$state/wanted"; then say "$unit"; fi
	done >"$1/lacking"
	if [ -s "$1/lacking" ]; then
		say "" "NOT ACTIVE, and active in the boot before ibprov:"
		sed 's/^/  /' "$1/lacking"
	else
		say "" "All units that were active in the boot before ibprov are active."
	fi
}

# --- the steps

begin() { # PACKAGE
	package=$(realpath -- "$1")
	[ -e "$package" ] || fail "there is no $1"
	if [ -n "$(command -v ibprov)" ] || [ -e /etc/ibprov ]; then
		fail "ibprov, or /etc/ibprov, is on this node already: this is a trial of the first installation"
	fi
	[ -n "$(functions)" ] || fail "there is no InfiniBand adapter here, and no RDMA device (a port of a DGX Spark needs its cable)"
	mkdir -p "$program.tree"
	chmod 700 "$state"
	[ "$(realpath -- "$0")" = "$script" ] || cp -- "$0" "$script"
	cp "$package" "$state/package.${package##*.}"
	case $package in
	*.deb) dpkg-deb -x "$package" "$program.tree" ;;
	*.rpm) (cd "$program.tree" && rpm2cpio "$package" | cpio -id --quiet) ;;
	*) fail "$package is neither a .deb nor an .rpm" ;;
	esac
	# Where sbin is a link to bin, it is there.
	ln -sfn "$(find "$program.tree" -type f \( -path '*/sbin/ibprov' -o -path '*/bin/ibprov' \))" "$program"
	"$program" --version || fail "the program of this package does not run here"
	without
	refuse_if_in_use
	say "Nothing uses the adapters. What will be done: a reboot without ibprov, to compare with; its" \
		"installation and dry runs; two reboots; its removal, and a reboot. Half a day, most of it boots." ""
	ask "No job, guest or service needs this node until the trial is over, and its reboots harm nothing." yes || fail "not begun"
	number=$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')
	say "" "ibprov field trial: the number is $number" >"${CONSOLE:-/dev/console}" || fail "cannot write to ${CONSOLE:-/dev/console}"
	ask "A second console (serial, BMC) has to work. A number was written to ${CONSOLE:-/dev/console}." "$number" "the number that you see there" ||
		fail "not begun: that is not the number. CONSOLE=/dev/ttyS1 names another console"
	next baseline
}

baseline() {
	snapshot "$state/before"
	measure "boot without ibprov" "$state/boot-0"
	without
	refuse_if_in_use
	ask "Install ibprov? It starts and stops nothing, and takes effect at the next boot." yes || fail "nothing was installed; sh $script --undo forgets this trial"
	case $(echo "$state"/package.*) in
	*.deb) dpkg -i "$state"/package.deb ;;
	*) rpm -i "$state"/package.rpm ;;
	esac
	configure || {
		say "Undone, since that was not agreed to, or is not possible."
		undo
		return
	}
	next first
}
configure() {
	mkdir -p "${config%/*}" || return 1
	# 1: ports that are not active are listed in a comment.
	ibprov config generate >"$config" || [ $? -eq 1 ] || return 1
	say "" "$config:" ""
	cat "$config"
	say "" "You may edit the file now, in another shell (DGX Spark: see docs/field-trial.md)."
	ask "Are these the ports that this node should have?" yes || return 1
	ibprov config check || return 1
	if ! systemctl is-enabled --quiet ibprov.service; then
		say "" "Another agent brings up InfiniBand. What becomes of it until the undo:" ""
		ibprov migrate || [ $? -eq 1 ] || return 1
		ask "Migrate?" yes || return 1
		ibprov migrate --apply || [ $? -eq 1 ] || return 1
	fi
	say "" "What the next boot would do:" ""
	ibprov boot --dry-run || [ $? -eq 1 ] || say "" "(above is what would be missing)"
	ask "Boot with ibprov?" yes
}

with_ibprov() { # NUMBER NEXT
	measure "boot $1 with ibprov" "$state/boot-$1"
	compare_units "$state/boot-$1"
	without
	if [ "$2" != undo ]; then
		refuse_if_in_use
		next "$2"
	else
		ask "Both boots are measured. Remove ibprov? Until then this asks again." yes || fail "ibprov stays; run this again to remove it, or never"
		undo
	fi
}

undo() {
	if is_installed; then
		rm -f "$config"
		case $(echo "$state"/package.*) in
		*.deb) dpkg --purge ibprov ;;
		*) rpm -e ibprov ;;
		esac
	fi
	if [ ! -e "$state/before/routes" ]; then
		rm -rf "$state"
		say "Nothing had been installed: the trial is forgotten."
		return
	fi
	next undone
}

undone() {
	snapshot "$state/after"
	measure "boot after the undo" "$state/boot-3"
	compare_units "$state/boot-3"
	if diff -r "$state/before" "$state/after" >"$state/difference"; then
		say "The undo is right: units, /etc, udev rules, names and routes are as before."
	else
		say "THE UNDO IS NOT RIGHT, or something else has changed this node (< before, > after):"
		cat "$state/difference"
	fi
	archive=/root/ibprov-field-trial.tar.gz
	(cd "$state" && find boot-* \( -name report -o -name lacking -o -name collect.tar.gz \) -size +0 | sort | tar -czf "$archive" -T -)
	say "" "For those who make ibprov: $archive. It has these files, and nothing was sent:" ""
	tar -tvzf "$archive"
	for inner in "$state"/boot-*/collect.tar.gz; do say "" "${inner#"$state/"}:" && tar -tzf "$inner"; done
	say "" "collect.tar.gz is anonymized: ibprov-collect(8) says what remains. Read it, then mail it." \
		"$state has the rest, and may be removed. The trial is over."
	echo over >"$state/step"
	[ ! -s "$state/difference" ] && [ ! -s "$state/boot-3/lacking" ]
}

[ "$(id -u)" = 0 ] || fail "not root"
step=$(cat "$state/step" 2>/dev/null || echo none)
case ${1:-} in
"")
	[ "$step" != none ] || fail "usage: field-trial.sh PACKAGE (then without PACKAGE, after each reboot) | --undo"
	[ "$step" != over ] || fail "the trial is over; rm -r $state forgets it"
	[ "$(boot_id)" != "$(cat "$state/boot")" ] || fail "this node has not been rebooted since the last step"
	timeout 900 systemctl is-system-running --wait >/dev/null || [ $? -ne 124 ] || fail "the boot has not ended in 15 min: systemctl list-jobs says why"
	;;
--undo)
	[ -d "$state" ] || fail "there is no trial to undo"
	undo
	exit
	;;
-*) fail "usage: field-trial.sh PACKAGE | --undo" ;;
*)
	[ "$step" = none ] || fail "a trial has begun, its next step is: $step. Go on: sh $script; or undo: sh $script --undo"
	begin "$1"
	exit
	;;
esac
case $step in
baseline) baseline ;;
first) with_ibprov 1 second ;;
second) with_ibprov 2 undo ;;
undone) undone ;;
esac
