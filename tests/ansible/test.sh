#!/bin/sh
# packaging/ansible with real ansible-core against three booted systemd-nspawn machines, by ssh
# over a pipe into each machine: no network. Their adapters are files mounted over sysfs. As root.
# test.sh DEB
set -eu
deb=$(realpath "$1")
cd "$(dirname "$0")/../.."
project=$PWD
root=$(sh tests/vm/image/build.sh root ansible)/root
work=$(mktemp -d "${TMPDIR:-/var/tmp}/ibprov-ansible-XXXXXX")
nodes="n1 n2 n3"
export LC_ALL=C.UTF-8
passed=0 failed=0

# Only processes that were started here, by their numbers.
end() {
	for node in $nodes; do
		# With its first process a machine ends, and systemd-nspawn with it.
		[ ! -s "$work/$node/init" ] || kill -KILL "$(cat "$work/$node/init")" 2>/dev/null || :
	done
	wait
	for node in $nodes; do
		umount -R "$work/$node/mount" 2>/dev/null || :
		find /sys/fs/cgroup -depth -type d -path "*/ibprov-ansible-$node*" -exec rmdir {} + 2>/dev/null || :
	done
	rm -rf "$work"
}
trap end EXIT
trap 'exit 1' INT TERM

# check WHAT COMMAND...: one test.
check() {
	what=$1
	shift
	if "$@" >"$work/said" 2>&1; then
		passed=$((passed + 1))
		echo "test $what ... ok"
	else
		failed=$((failed + 1))
		echo "test $what ... FAILED"
		sed 's/^/    /' "$work/said"
	fi
}

# --- the machines
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
mkdir "$work/repository" "$work/program"
cp "$deb" "$work/repository"
(cd "$work/repository" && dpkg-scanpackages . >Packages 2>/dev/null)
dpkg-deb -x "$deb" "$work/program"

adapter() { # FOLDER NUMBER: a PF and its two VFs as sysfs shows them under MLNX_OFED
	guid=b859:9f03:0000:000$2
	port=infiniband/mlx5_0/ports/1
	pci_function "$1/0000:4b:00.0" 101b
	mkdir -p "$1/0000:4b:00.0/$port/gids"
	for line in sriov_totalvfs=16 sriov_numvfs=2 infiniband/mlx5_0/node_guid="$guid" infiniband/mlx5_0/hca_type=MT4123 \
		$port/link_layer=InfiniBand $port/state='4: ACTIVE' $port/phys_state='5: LinkUp' $port/lid=0x7 \
		$port/gids/0="fe80:0000:0000:0000:$guid"; do
		echo "${line#*=}" >"$1/0000:4b:00.0/${line%%=*}"
	done
	ln -s ../../../../kernel/iommu_groups/17 "$1/0000:4b:00.0/iommu_group"
	for vf in 0 1; do
		pci_function "$1/0000:4b:00.$((vf + 1))" 101c
		ln -s ../0000:4b:00.0 "$1/0000:4b:00.$((vf + 1))/physfn"
		ln -s "../0000:4b:00.$((vf + 1))" "$1/0000:4b:00.0/virtfn$vf"
		mkdir -p "$1/0000:4b:00.0/sriov/$vf"
		echo "0200:000$2:0000:000$vf" >"$1/0000:4b:00.0/sriov/$vf/node"
		echo "0200:000$2:0001:000$vf" >"$1/0000:4b:00.0/sriov/$vf/port"
		echo Follow >"$1/0000:4b:00.0/sriov/$vf/policy"
	done
}

pci_function() { # FOLDER DEVICE
	mkdir -p "$1"
	for line in class=0x020700 vendor=0x15b3 device="0x$2" driver_override='(null)' \
		modalias="pci:v000015B3d0000$(echo "$2" | tr a-f A-F)sv000015B3sd00000007bc02sc07i00"; do
		echo "${line#*=}" >"$1/${line%%=*}"
	done
	ln -s ../../drivers/mlx5_core "$1/driver"
}

lay() { # NODE
	here=$work/$1
	mkdir -p "$here/mount"
	mount -t tmpfs tmpfs "$here/mount"
	mkdir "$here/mount/upper" "$here/mount/work" "$here/mount/root"
	mount -t overlay -o "lowerdir=$root,upperdir=$here/mount/upper,workdir=$here/mount/work" overlay "$here/mount/root"
	tree=$here/mount/root
	echo "$1" >"$tree/etc/hostname"
	mkdir -p "$tree/srv" "$tree/root/.ssh" "$tree/etc/ibprov" "$tree/bed"
	adapter "$tree/bed/pci" "${1#n}"
	cp -r "$work/repository" "$tree/srv/repository"
	echo 'deb [trusted=yes] file:/srv/repository ./' >"$tree/etc/apt/sources.list"
	rm -f "$tree"/etc/apt/sources.list.d/*
	chroot "$tree" apt-get -q update >/dev/null
	cp "$work/key.pub" "$tree/root/.ssh/authorized_keys"
	chmod -R go= "$tree/root/.ssh"
	chroot "$tree" ssh-keygen -q -A
	chroot "$tree" systemctl --quiet mask ssh.service ssh.socket
	# A machine says by this pipe that it has come up.
	mkfifo "$here/up"
	: >"$tree/bed/up"
	cat >"$tree/etc/systemd/system/bed-up.service" <<-'UNIT'
		[Unit]
		After=dbus.service
		[Service]
		Type=oneshot
		ExecStart=/bin/sh -c 'echo up >/bed/up'
		[Install]
		WantedBy=multi-user.target
	UNIT
	cat >"$tree/etc/systemd/system/sys-bus-pci-devices.mount" <<-'UNIT'
		[Unit]
		DefaultDependencies=no
		Before=local-fs.target
		[Mount]
		What=/bed/pci
		Where=/sys/bus/pci/devices
		Type=none
		Options=bind
		[Install]
		WantedBy=local-fs.target
	UNIT
	chroot "$tree" systemctl --quiet enable bed-up.service sys-bus-pci-devices.mount
}

# boot NODE: once, until it ends. Three of one caller would share their cgroup.
boot() {
	sh -c '
		for procs in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
			[ -e "$procs/cgroup.procs" ] || continue
			mkdir -p "$procs/ibprov-ansible-$1" && echo $$ >"$procs/ibprov-ansible-$1/cgroup.procs" || :
		done
		echo $$ >"$2/nspawn"
		exec systemd-nspawn --quiet --directory "$2/mount/root" --register=no --keep-unit --private-network \
			--link-journal=no --console=pipe --bind="$2/up:/bed/up" --machine="$1" --boot systemd.unit=multi-user.target
	' sh "$1" "$work/$1" </dev/null >>"$work/$1/console" 2>&1
}

# run NODE: until it powers off. With --keep-unit systemd-nspawn ends with 133 at a reboot, for
# whom it runs under to start it again.
run() {
	here=$work/$1
	first=yes
	while :; do
		boot "$1" &
		came_up=yes
		timeout 120 cat "$here/up" >/dev/null || came_up=no
		pgrep -P "$(cat "$here/nspawn")" | head -n 1 >"$here/init"
		[ $first = no ] || echo $came_up >"$here/came-up"
		first=no
		code=0
		wait $! || code=$?
		: >"$here/init"
		[ $code = 133 ] || break
	done
}

start() { # NODE
	mkfifo "$work/$1/came-up"
	run "$1" &
	if [ "$(cat "$work/$1/came-up")" != yes ]; then
		echo "$1 did not come up:" >&2
		tail -n 30 "$work/$1/console" >&2
		exit 1
	fi
}

inside() { # NODE COMMAND...
	node=$1
	shift
	nsenter --target "$(cat "$work/$node/init")" --all -- "$@"
}

# What ssh connects by: its standard input and output are those of an sshd in the machine. Not
# by nsenter's own child: systemd-shutdown stops all processes before it ends them, nsenter stops
# itself with its child, and a child that is not waited for holds the machine's end up.
cat >"$work/connect" <<E2
#!/bin/sh
# connect NODE
init=\$(cat "$work/\$1/init")
[ -n "\$init" ] || { echo "\$1 is not up" >&2; exit 1; }
exec nsenter --target "\$init" --all --no-fork -- /bin/sh -c "mkdir -p /run/sshd; /usr/sbin/sshd -i -o UsePAM=no -o LogLevel=ERROR; exit"
E2
chmod 755 "$work/connect"

echo "[ibprov]" >"$work/inventory"
for node in $nodes; do
	lay "$node"
	start "$node"
	cat >>"$work/inventory" <<-LINE
		$node ansible_user=root ansible_ssh_private_key_file=$work/key ansible_ssh_common_args='-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ProxyCommand="$work/connect $node"'
	LINE
done

# --- what a site says
cat >"$work/site.yml" <<'E2'
ibprov_batches: [1, 100%]
ibprov_verify_retries: 1
ibprov_verify_delay: 0
ibprov_config:
  50-site.toml: |
    [boot]
    timeout = "2min"
    ports = "listed"

    [[pf]]
    pci = "0000:4b:00.0"
    vfs = 2
    guid.template = "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}"
E2
play() { # OPTION...
	ANSIBLE_NOCOWS=1 ANSIBLE_RETRY_FILES_ENABLED=0 ANSIBLE_HOST_KEY_CHECKING=0 ANSIBLE_STDOUT_CALLBACK=default \
		ANSIBLE_SSH_CONTROL_PATH_DIR=$work/cp ANSIBLE_LOCAL_TEMP=$work/tmp ANSIBLE_SSH_ARGS='-o ControlMaster=auto -o ControlPersist=60s' ANSIBLE_ROLES_PATH=$project/packaging/ansible/roles \
		ansible-playbook -i "$work/inventory" -e "@$work/site.yml" \
		-e "ibprov_controller_command=$work/program/usr/sbin/ibprov" \
		"$@" "$project/packaging/ansible/site.yml" >"$work/play" 2>&1 && code=0 || code=$?
	cat "$work/play"
	return "$code"
}
# Of each node, what the last play says: recap NODE WORD
recap() {
	sed -n '/^PLAY RECAP/,$p' "$work/play" | sed -n "s/^$1 .*$2=\([0-9]*\).*/\1/p"
}
all_have() { # WORD NUMBER
	for node in $nodes; do [ "$(recap "$node" "$1")" = "$2" ] || return 1; done
}
each() { # COMMAND...: in every machine
	for node in $nodes; do inside "$node" "$@" || return 1; done
}
none() { # COMMAND...: in no machine
	for node in $nodes; do ! inside "$node" "$@" || return 1; done
}
is_enabled="systemctl is-enabled --quiet ibprov.service"

# --- a first run that is only checked
first_check() {
	play --check || return 1
	for node in $nodes; do [ "$(recap "$node" changed)" -gt 0 ] || return 1; done
	none test -e /usr/sbin/ibprov && none test -e /etc/systemd/system/ibprov.service
}
check "a first run that is only checked would change something, and changes nothing" first_check

# --- a duplicate
duplicate() {
	inside n3 sh -c 'mkdir -p /etc/ibprov/ibprov.d && echo "host.number = 2" >/etc/ibprov/ibprov.d/10-host.toml'
	! play || return 1
	grep -q '0200:0002:0000:0000' "$work/play" || return 1
	! grep -q 'Enable ibprov.service' "$work/play" || return 1
	each test -x /usr/sbin/ibprov && none $is_enabled
}
check "a duplicate GUID ends the play in phase 2: installed everywhere, enabled nowhere" duplicate
pinned() { # NODE NUMBER
	inside "$1" cat /etc/ibprov/guid-pins.toml >"$work/pins" || return 1
	cat "$work/pins"
	grep -qx "host = \"$1\"" "$work/pins" && grep -q "0200:000$2:0001:0001" "$work/pins"
}
made() { pinned n1 1 && pinned n2 2 && pinned n3 2; }
check "the pins that it found were made on the nodes" made
inside n3 rm /etc/ibprov/ibprov.d/10-host.toml /etc/ibprov/guid-pins.toml

# --- the first run
first() {
	play || return 1
	for node in $nodes; do [ "$(recap "$node" changed)" -gt 0 ] || return 1; done
	# shellcheck disable=SC2086 # a command and its words
	each $is_enabled && each grep -q 2min /etc/ibprov/ibprov.d/50-site.toml && pinned n3 3
}
check "the first run installs, configures, pins and enables" first
again() { play && all_have changed 0; }
check "the second run changes nothing" again
again_check() { play --check && all_have changed 0; }
check "a second run that is only checked would change nothing" again_check

# --- drift
drift() {
	inside n2 systemctl --quiet disable ibprov.service || return 1
	play --check || return 1
	[ "$(recap n1 changed) $(recap n2 changed) $(recap n3 changed)" = "0 1 0" ] || return 1
	! inside n2 systemctl is-enabled --quiet ibprov.service || return 1
	play || return 1
	[ "$(recap n1 changed) $(recap n2 changed) $(recap n3 changed)" = "0 1 0" ] && each $is_enabled
}
check "what would change is what changes" drift

# --- a reboot
boot_ids() { for node in $nodes; do inside "$node" cat /proc/sys/kernel/random/boot_id; done; }
reboot() {
	inside n3 systemctl --quiet disable ibprov.service || return 1
	boot_ids >"$work/before"
	play -e ibprov_reboot=true --check || return 1
	boot_ids | cmp "$work/before" - || return 1
	play -e ibprov_reboot=true || return 1
	boot_ids >"$work/after"
	# shellcheck disable=SC2086 # a command and its words
	[ "$(diff "$work/before" "$work/after" | grep -c '^>')" = 1 ] && [ "$(sed -n 3p "$work/before")" != "$(sed -n 3p "$work/after")" ] && each $is_enabled || return 1
	play -e ibprov_reboot=true && all_have changed 0 && boot_ids | cmp "$work/after" -
}
check "a node that was changed is rebooted, and no other" reboot

# --- a node that comes back with a fault that it did not have
less() {
	inside n3 sh -c 'cat >/etc/systemd/system/ibprov-less.service' <<-'UNIT' || return 1
		[Service]
		Type=oneshot
		ExecStart=/bin/false
		[Install]
		WantedBy=multi-user.target
	UNIT
	inside n3 sh -c 'systemctl --quiet enable ibprov-less.service && systemctl --quiet disable ibprov.service' || return 1
	! play -e ibprov_reboot=true || return 1
	[ "$(recap n3 failed)" = 1 ] && grep -q 'not there before: unit-failed ibprov-less.service' "$work/play"
}
check "a finding that is there after a change only ends the play, although the node is ready" less
before() {
	play && all_have changed 0 || return 1
	inside n3 sh -c 'systemctl --quiet disable ibprov-less.service; rm /etc/systemd/system/ibprov-less.service; systemctl reset-failed'
}
check "one that was there before is no reason to end it" before

# --- a node with openibd
migrate() {
	inside n1 systemctl --quiet disable ibprov.service || return 1
	inside n1 sh -c 'printf "[Unit]\nDefaultDependencies=no\nAfter=local-fs.target\nBefore=network.target\n[Service]\nType=oneshot\nExecStart=/bin/true\n[Install]\nWantedBy=sysinit.target\n" >/usr/lib/systemd/system/openibd.service && systemctl --quiet enable openibd.service' || return 1
	play -e ibprov_migrate=true --check || return 1
	[ "$(recap n1 changed)" = 1 ] && inside n1 test -e /etc/systemd/system/sysinit.target.wants/openibd.service || return 1
	play -e ibprov_migrate=true || return 1
	! inside n1 test -e /etc/systemd/system/sysinit.target.wants/openibd.service || return 1
	# shellcheck disable=SC2086 # a command and its words
	inside n1 $is_enabled && play -e ibprov_migrate=true && all_have changed 0
}
check "a node with openibd is migrated, once" migrate

# --- a node that is not ready
not_ready() {
	printf '[[port]]\nrdma = "mlx5_9"\n' | inside n2 sh -c 'cat >/etc/ibprov/ibprov.d/60-port.toml'
	! play || return 1
	[ "$(recap n2 failed)" = 1 ] && grep -q 'absent, and expected' "$work/play"
}
check "a required port that is missing ends the play in phase 3" not_ready

# --- a configuration with an error
bad() {
	printf '[boot]\ntimeot = 1\n' | inside n1 sh -c 'cat >/etc/ibprov/ibprov.d/70-bad.toml'
	! play || return 1
	grep -q 'unknown key' "$work/play" && ! grep -q 'PLAY \[Phase 2' "$work/play"
}
check "an error in the configuration ends the play in phase 1" bad

echo "test result: $([ $failed = 0 ] && echo ok || echo FAILED). $passed passed; $failed failed"
[ $failed = 0 ]
