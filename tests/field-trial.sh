#!/bin/sh
# packaging/field-trial.sh in a booted systemd-nspawn machine, from its refusals to the boot after
# its undo: on a node that nothing brings up, on one of openibd's, and on one whose operator
# declines after the installation. The adapter is a folder
# that is mounted over sysfs, and its netdev is a veth. As root.
# field-trial.sh DEB
set -eu
deb=$(realpath "$1")
cd "$(dirname "$0")/.."
[ "${2-}" = mounted ] || exec unshare --mount --propagation private setpriv --pdeathsig KILL sh tests/field-trial.sh "$deb" mounted
root=$(sh tests/vm/image/build.sh root base | tail -n 1)/root
work=$(mktemp -d "${TMPDIR:-/var/tmp}/field-trial-XXXXXX")
cgroups() { find /sys/fs/cgroup -maxdepth 3 -type d -name 'ibprov-field-trial'; }
end() {
	for cgroup in $(cgroups); do find "$cgroup" -depth -type d -exec rmdir {} +; done 2>/dev/null || :
	umount -R "$work/mount" 2>/dev/null || :
	rm -rf "$work"
}
trap end EXIT
trap 'exit 1' INT TERM
export LC_ALL=C.UTF-8
passed=0 failed=0
check() { # WHAT COMMAND...: one test
	what=$1
	shift
	if "$@" >"$work/said" 2>&1; then
		passed=$((passed + 1))
		echo "test $kind: $what ... ok"
	else
		failed=$((failed + 1))
		echo "test $kind: $what ... FAILED"
		sed 's/^/    /' "$work/said"
	fi
}

lay() {
	mkdir -p "$work/mount"
	mount -t tmpfs tmpfs "$work/mount"
	mkdir "$work/mount/upper" "$work/mount/work" "$work/mount/root"
	mount -t overlay -o "lowerdir=$root,upperdir=$work/mount/upper,workdir=$work/mount/work" overlay "$work/mount/root"
	tree=$work/mount/root
	pci=$tree/bed/pci/0000:4b:00.0
	mkdir -p "$tree/bed/out" "$pci/net/ib0"
	for line in class=0x020700 vendor=0x15b3 device=0x101b modalias=pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00; do
		echo "${line#*=}" >"$pci/${line%%=*}"
	done
	ln -s ../../drivers/mlx5_core "$pci/driver"
	cp packaging/field-trial.sh "$deb" "$tree/bed/"
	echo "$kind" >"$tree/bed/kind"
	unit bed-sysfs.service sysinit.target <<-'UNIT'
		[Unit]
		DefaultDependencies=no
		Before=local-fs.target
		[Service]
		Type=oneshot
		RemainAfterExit=yes
		ExecStart=/bin/mount --bind /bed/pci /sys/bus/pci/devices
		ExecStart=/sbin/ip link add ib0 type veth peer name peer
		ExecStart=/sbin/ip addr add 10.0.0.1/24 dev ib0
		ExecStart=/sbin/ip link set ib0 up
	UNIT
	unit bed-step.service multi-user.target <<-'UNIT'
		[Service]
		Type=exec
		ExecStart=/bin/sh /bed/step
	UNIT
	# What the site depends on.
	unit site.service multi-user.target <<-'UNIT'
		[Service]
		Type=oneshot
		RemainAfterExit=yes
		ExecStart=/bin/true
	UNIT
	[ "$kind" != openibd ] || unit openibd.service sysinit.target <<-'UNIT'
		[Unit]
		DefaultDependencies=no
		Before=network.target
		[Service]
		Type=oneshot
		RemainAfterExit=yes
		ExecStart=/bin/true
	UNIT
	cat >"$tree/bed/step" <<-'STEP'
		trial=/var/lib/ibprov-field-trial
		step=$(cat /bed/number 2>/dev/null || echo 0)
		# as NAME COMMAND...: a file with what it said, and its exit code at the end.
		as() {
			name=$1
			shift
			{ "$@" 2>&1 && echo "exit 0" || echo "exit $?"; } >"/bed/out/$name"
		}
		# A process with the name that the kernel has of it.
		called() {
			cp /bin/sleep "/bed/$1"
			"/bed/$1" 600 &
			users="$users $!"
		}
		connected() { ss -Htn state established | grep -q 10.0.0.1:2222; }
		begin() { CONSOLE=/bed/console sh /bed/field-trial.sh /bed/*.deb; }
		# What somebody types who looks at the second console.
		answers() {
			echo yes
			until grep -q . /bed/console 2>/dev/null; do sleep 0.2; done
			sed -n 's/.*number is //p' /bed/console
		}
		next() { yes yes 2>/dev/null | sh $trial/field-trial.sh; }
		case $step in
		0)
			as not-root setpriv --reuid 65534 --clear-groups sh /bed/field-trial.sh /bed/*.deb
			users=
			for name in opensm qemu-system-x86 slurmstepd slurmd kubelet; do called $name; done
			# Connected although nobody accepts it.
			systemd-run --quiet --socket-property=ListenStream=10.0.0.1:2222 --unit=bed-tcp sleep infinity
			bash -c 'exec 4<>/dev/tcp/10.0.0.1/2222 && exec sleep 600' &
			users="$users $!"
			until connected; do sleep 0.2; done
			yes yes 2>/dev/null | as in-use begin
			systemctl stop bed-tcp.socket bed-tcp.service
			kill $users
			yes yes 2>/dev/null | as wrong-number begin
			rm -f /bed/console
			answers | as begins begin
			as too-early next
			;;
		1)
			if grep -qx declined /bed/kind; then
				printf 'yes\nno\n' | as installs sh $trial/field-trial.sh
				step=3
			else
				as installs next
			fi
			;;
		2)
			systemctl stop site.service
			as first next
			;;
		3) as second next ;;
		4)
			as undone next
			# What the undo left would be seen.
			echo undone >$trial/step
			mkdir /etc/left
			systemctl --quiet disable site.service
			as left next
			exec systemctl exit 0
			;;
		esac
		echo $((step + 1)) >/bed/number
		exec systemctl reboot
	STEP
}
unit() { # NAME TARGET: standard input, wanted by TARGET
	{ cat && printf '[Install]\nWantedBy=%s\n' "$2"; } >"$tree/etc/systemd/system/$1"
	SYSTEMD_OFFLINE=1 chroot "$tree" systemctl --quiet enable "$1"
}

# Until it ends by itself. With --keep-unit systemd-nspawn ends with 133 at a reboot.
run() {
	: >"$work/console"
	for _ in 0 1 2 3 4; do
		code=0
		timeout 180 sh -c '
			for procs in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
				[ -e "$procs/cgroup.procs" ] || continue
				mkdir -p "$procs/ibprov-field-trial" && echo $$ >"$procs/ibprov-field-trial/cgroup.procs" || :
			done
			exec systemd-nspawn --quiet --directory "$1" --register=no --keep-unit --private-network \
				--link-journal=no --console=pipe --boot systemd.unit=multi-user.target
		' sh "$tree" </dev/null >>"$work/console" 2>&1 || code=$?
		[ $code = 133 ] || break
	done
	[ "$code" = 0 ] || tail -n 30 "$work/console"
	return "$code"
}
# said STEP EXIT TEXT...
said() {
	file=$tree/bed/out/$1
	cat "$file"
	[ "$(tail -n 1 "$file")" = "exit $2" ] || return 1
	shift 2
	for text; do grep -qF -- "$text" "$file" || { echo "missing: $text" && return 1; }; done
}
active="All units that were active in the boot before ibprov are active."

for kind in plain openibd declined; do
	lay
	check "it boots, step by step" run
	check "it wants root" said not-root 1 "not root"
	check "each use is a reason not to begin" said in-use 1 "a TCP connection from 10.0.0.1:" "a subnet manager: opensm" \
		"a virtual machine: qemu-system-x86" "a job of Slurm: slurmstepd" "slurmd, and Slurm does not say that" \
		"kubelet, and Kubernetes does not say that"
	check "the second console has to be seen" said wrong-number 1 "not begun: that is not the number"
	check "it begins with the way back" said begins 0 "ibprov=0 to the line that begins with linux" "Now reboot this node"
	check "a step waits for its reboot" said too-early 1 "has not been rebooted since the last step"
	case $kind in
	plain) what="What the next boot would do:" ;;
	openibd) what="migrated; it takes effect at the next boot" ;;
	declined) what="Undone, since that was not agreed to" ;;
	esac
	check "what will be done is shown" said installs 0 "boot without ibprov: Linux " "# Expected and not active:" "$what"
	if [ "$kind" != declined ]; then
		check "a unit that is not active any more is named" said first 0 "NOT ACTIVE, and active in the boot before ibprov:" "  site.service"
		check "two boots are measured" said second 0 "boot 2 with ibprov: Linux" "$active"
	fi
	check "the undo leaves nothing" said undone 0 "The undo is right" "$active" "boot-3/collect.tar.gz"
	check "what it left would be seen" said left 1 "THE UNDO IS NOT RIGHT" "> drwxr-xr-x 0 0 /etc/left" "> site.service disabled"
	umount -R "$work/mount"
done
echo "test result: $([ $failed = 0 ] && echo ok || echo FAILED). $passed passed; $failed failed"
[ $failed = 0 ]
