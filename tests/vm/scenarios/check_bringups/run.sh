set -u
. /usr/lib/bed/bringup.sh
for word in $(cat /proc/cmdline); do
	case $word in bed.faults=*) faults=$(echo "${word#*=}" | tr , ' ') ;; esac
done
second=0001:02:00.0
units=/etc/systemd/system
modules=/lib/modules/$(uname -r)
ipoib=$(find "$modules" -name 'ib_ipoib.ko*')
reload() { systemctl daemon-reload; }
# consumer NAME COMMAND: a unit that nothing orders after the ports, and starts before.
consumer() {
	cat >"$units/$1.service" <<-END
		[Unit]
		Description=$1
		DefaultDependencies=no
		After=local-fs.target
		[Service]
		Type=oneshot
		RemainAfterExit=yes
		ExecStart=/bin/sh -c '$2'
		[Install]
		WantedBy=multi-user.target
	END
	systemctl --quiet enable "$1.service" 2>/dev/null
}
gone() { # UNIT
	systemctl --quiet disable "$1" 2>/dev/null
	rm -rf "$units/$1" "$units/$1.d"
	reload
	systemctl reset-failed
}
early() { systemctl start "$1" 2>/dev/null; up; active; }
mkdir -p /etc/ibprov
echo 1 >"$pci/$second/remove"

# Healthy, with words that alarm.
wait_plain() { active; }
make_late_card() { knobs "$pf/slow.ALLOC_XRCD=2500"; }
wait_late_card() { active; }
back_late_card() { knobs "$pf/slow.ALLOC_XRCD=0"; }
make_late_sm() { knobs "$pf/active_delay_ms=6000"; }
wait_late_sm() { active; }
back_late_sm() { knobs "$pf/active_delay_ms=0"; }
others() { echo 1 >/sys/bus/pci/rescan; udevadm settle; }
alone() { down; echo 1 >"$pci/$second/remove"; }
make_unused_port() { others; printf '[[port]]\npci = "%s"\nrequired = false\n' $second >/etc/ibprov/ibprov.toml; }
wait_unused_port() { active; }
back_unused_port() { alone; rm /etc/ibprov/ibprov.toml; }
make_ethernet_port() { knobs "$second/link_type=eth"; others; }
wait_ethernet_port() { active; }
back_ethernet_port() { alone; knobs "$second/link_type=ib"; }
make_nvswitch_port() { knobs "$second/vpd=V3:SMDL=SW_MNG" "$second/link=init"; others; }
wait_nvswitch_port() { active; }
back_nvswitch_port() { alone; }

# The fabric.
make_cable() { knobs "$pf/link=down"; }
make_no_sm() { knobs "$pf/link=init"; }
back_cable() { knobs "$pf/link=active"; }
back_no_sm() { back_cable; }

# Modules.
make_blacklist() { echo "blacklist ib_ipoib" >/etc/modprobe.d/site.conf; systemctl --quiet disable ibprov.service; }
up_blacklist() { modprobe mlx5_core; udevadm settle; modprobe -b ib_ipoib; systemctl start networking.service 2>/dev/null; }
back_blacklist() { rm /etc/modprobe.d/site.conf; systemctl --quiet enable ibprov.service; }
make_install_line() { echo "install ib_ipoib /bin/false" >/etc/modprobe.d/site.conf; }
back_install_line() { rm /etc/modprobe.d/site.conf; }
make_driver_denied() { printf 'blacklist mlx5_core\ninstall mlx5_core /bin/true\n' >/etc/modprobe.d/site.conf; }
back_driver_denied() { rm /etc/modprobe.d/site.conf; }
make_missing() { mv "$ipoib" /run/ipoib; depmod; }
back_missing() { mv /run/ipoib "$ipoib"; depmod; }
# Without its signature, which would not hold any more.
make_other_kernel() {
	cp "$ipoib" /run/ipoib
	set -- $(tail -c 32 "$ipoib" | head -c 4 | od -An -tu1)
	signature=$(((($1 * 256 + $2) * 256 + $3) * 256 + $4 + 40))
	head -c "-$signature" /run/ipoib | sed 's/ SMP preempt/ UMP preempt/' >"$ipoib"
}
back_other_kernel() { mv /run/ipoib "$ipoib"; }
make_signature() { cp "$ipoib" /run/ipoib; sed -i 's/vermagic=6/vermagic=5/' "$ipoib"; }
back_signature() { mv /run/ipoib "$ipoib"; }

# The network's name for the port, and who brings it up.
make_renamed() {
	echo 'SUBSYSTEM=="net", ACTION=="add", DRIVERS=="mlx5_core", NAME="fabric0"' >/etc/udev/rules.d/70-site.rules
	udevadm control --reload
}
back_renamed() { rm /etc/udev/rules.d/70-site.rules; udevadm control --reload; }
make_disabled() { systemctl --quiet disable ibprov.service; }
up_disabled() { modprobe mlx5_core; udevadm settle; systemctl start networking.service 2>/dev/null; }
back_disabled() { systemctl --quiet enable ibprov.service; }
make_masked() { systemctl --quiet mask ibprov.service; }
up_masked() { up_disabled; }
back_masked() { systemctl --quiet unmask ibprov.service; systemctl --quiet enable ibprov.service; }
make_late_without() { make_disabled; }
up_late_without() { up_disabled; modprobe ib_ipoib; udevadm settle; }
wait_late_without() { active; }
back_late_without() { back_disabled; }

# The driver and the adapter.
make_enomem() { knobs "$pf/fail.INIT_HCA=0:8"; }
make_eio() { knobs "$pf/fail.INIT_HCA=0:1"; }
back_eio() { knobs "$pf/fail.INIT_HCA=9999"; }
back_enomem() { back_eio; }
make_hung() { knobs "$pf/cmd_timeout_ms=4000"; }
up_hung() { up; active; knobs "$pf/silent=1"; within 60 kernel_says 'health compromised'; }
kernel_says() { dmesg | grep -q "$1"; }
back_hung() { knobs "$pf/silent=0" "$pf/cmd_timeout_ms=0"; }

# What needs ib0 and comes too early.
make_slurmd() { consumer slurmd 'test -e /sys/class/net/ib0'; }
up_slurmd() { early slurmd.service; }
back_slurmd() { gone slurmd.service; }
make_lnet() { consumer lnet 'test -e /sys/class/net/ib0 || { echo "cannot parse interface ib0: No such device" >&2; exit 1; }'; }
up_lnet() { early lnet.service; }
back_lnet() { gone lnet.service; }
make_beegfs() { consumer beegfs-client 'ip addr show dev ib0 >/dev/null 2>&1 || { echo "No usable interface found (connInterfacesFile)" >&2; exit 1; }'; reload; printf 'ib0\n' >/etc/beegfs-interfaces; sed -i "s,^Description=.*,Description=BeeGFS client with ib0," $units/beegfs-client.service; }
up_beegfs() { early beegfs-client.service; }
back_beegfs() { gone beegfs-client.service; rm /etc/beegfs-interfaces; }
make_bind() { consumer site-exporter 'ip -o addr | grep -q 192.168.77.9 || { echo "bind 192.168.77.9:9100: Cannot assign requested address" >&2; exit 1; }'; }
up_bind() { early site-exporter.service; }
back_bind() { gone site-exporter.service; }
mounted() { # OPTIONS
	printf '[Unit]\nDefaultDependencies=no\n[Mount]\nWhat=192.168.77.1:/data\nWhere=/mnt/data\nType=nfs\nOptions=%s\n[Install]\nWantedBy=multi-user.target\n' "$1" >$units/mnt-data.mount
	mkdir -p /mnt/data
	systemctl --quiet enable mnt-data.mount 2>/dev/null
}
make_mount() { mounted ro; }
up_mount() { early mnt-data.mount; }
back_mount() { gone mnt-data.mount; }
make_mount_netdev() { mounted ro,_netdev; }
up_mount_netdev() { early mnt-data.mount; }
back_mount_netdev() { gone mnt-data.mount; }

# The node's own units and files.
make_cycle() { mkdir -p $units/ibprov.service.d; printf '[Unit]\nAfter=network.target\n' >$units/ibprov.service.d/x.conf; reload; }
wait_cycle() { active; }
back_cycle() { rm -r $units/ibprov.service.d; reload; }
make_bad_configuration() { printf '[boot]\nmodules = ["ib_ipoib"\n' >/etc/ibprov/ibprov.toml; }
# udev has loaded the driver: boot itself does not, whose ignored functions it cannot read.
up_bad_configuration() { modprobe mlx5_core; udevadm settle; up; }
back_bad_configuration() { rm /etc/ibprov/ibprov.toml; }
make_full_run() { mount -t tmpfs -o size=8k,mode=755 tmpfs /run/ibprov; cat /dev/zero >/run/ibprov/filled 2>/dev/null; }
back_full_run() { systemctl stop ibprov.service; umount -l /run/ibprov; }
vendor() { # SCRIPT: openibd, enabled, and ibprov not
	systemctl --quiet disable ibprov.service ibprov-openibd.service 2>/dev/null
	printf '[Unit]\nDescription=openibd - configure Mellanox devices\nDefaultDependencies=false\nBefore=network.target networking.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c "%s"\n[Install]\nWantedBy=sysinit.target\n' "$1" >$units/openibd.service
	systemctl --quiet enable openibd.service 2>/dev/null
}
back_vendor() { systemctl stop openibd.service; gone openibd.service; systemctl --quiet enable ibprov.service ibprov-openibd.service 2>/dev/null; }
make_openibd_fails() { vendor 'echo Loading Mellanox MLX5_CORE driver: [FAILED]; exit 1'; }
up_openibd_fails() { systemctl start openibd.service networking.service 2>/dev/null; }
back_openibd_fails() { back_vendor; }
make_openibd_masked() { vendor true; gone openibd.service; systemctl --quiet mask openibd.service; }
up_openibd_masked() { up_disabled; }
back_openibd_masked() { systemctl --quiet unmask openibd.service; systemctl --quiet enable ibprov.service ibprov-openibd.service 2>/dev/null; }

for name in $faults; do
	fault "$name"
done
true
