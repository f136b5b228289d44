set -u
. /usr/lib/bed/bringup.sh
second=0001:02:00.0
file=/etc/ibprov/ibprov.toml
units=/etc/systemd/system
cp $file /run/planned.toml
back() { cp /run/planned.toml $file; }
vfs() { knobs "$pf+vf/$1"; }
echo 1 >"$pci/$second/remove"

# As planned, and VFs that nobody uses: healthy.
wait_planned() { active; }
make_unused_vfs() { sed -i 's/^vfs = 2/&\ndriver = "none"/' $file; }
wait_unused_vfs() { active; }
back_unused_vfs() { back; }

# The VFs' own probe.
make_vf_enomem() { vfs fail.INIT_HCA=0:8; }
make_vf_eio() { vfs fail.INIT_HCA=0:1; }
back_vf_eio() { vfs fail.INIT_HCA=9999; }
back_vf_enomem() { back_vf_eio; }

# GUIDs and policy.
make_guid_dropped() { knobs "$pf/guid_write=drop"; }
back_guid_dropped() { knobs "$pf/guid_write=ok"; }
make_guid_refused() { knobs "$pf/guid_write=9"; }
back_guid_refused() { knobs "$pf/guid_write=ok"; }
up_guid_stale() { back; up; sed -i s/02:00:00:70/02:00:00:71/ $file; vfs latch=stale; systemctl restart ibprov.service 2>/dev/null; }
back_guid_stale() { vfs latch=fresh; back; }
make_guid_zero() { rm $file; }
up_guid_zero() { up; echo 2 >"$pci/$pf/sriov_numvfs"; udevadm settle; active; }
back_guid_zero() { back; }
make_guid_twice() { sed -i 's/{vf:16}/0001/' $file; }
back_guid_twice() { back; }
make_policy_down() { sed -i "s,^vfs = 2,&\nlink-state = \"down\"," $file; }
back_policy_down() { back; }
make_policy_dropped() { sed -i 's/^vfs = 2/&\nlink-state = "up"/' $file; knobs "$pf/policy_write=drop"; }
back_policy_dropped() { knobs "$pf/policy_write=ok"; back; }

# The number of VFs.
make_totalvfs() { echo 1 >/sys/bus/pci/rescan; udevadm settle; printf '\n[[pf]]\npci = "%s"\nvfs = 2\nguid.template = "02:00:00:70:{pf:8}:{kind:8}:{vf:16}"\n' $second >>$file; }
back_totalvfs() { back; down; echo 1 >"$pci/$second/remove"; }
make_too_many() { sed -i 's/^vfs = 2/vfs = 3/' $file; }
back_too_many() { back; }
up_in_use() {
	up
	netdev=$(ls "$pci/$pf/virtfn0/net")
	ip link set "$netdev" up
	ip addr add 10.9.0.1/24 dev "$netdev"
	sed -i 's/^vfs = 2/vfs = 1/' $file
	systemctl restart ibprov.service 2>/dev/null
	active
}
back_in_use() { back; }

# Virtual machines: what libvirt says of them, in its words.
says() { logger -t libvirtd -p daemon.err "$1"; }
up_guest_early() {
	says "internal error: Failed to autostart VM 'compute0': internal error: qemu unexpectedly closed the monitor: vfio 0001:01:00.1: no such host device: No such file or directory"
	up
	active
}
make_guest_autostart() {
	mkdir -p /etc/libvirt/qemu/autostart
	cat >/etc/libvirt/qemu/compute0.xml <<-'END'
		<domain type='kvm'><name>compute0</name><uuid>5f0b3a52-6ad9-4b5e-9a57-1f3e1f4a0c11</uuid>
		<devices><hostdev mode='subsystem' type='pci' managed='yes'><source>
		<address domain='0x0001' bus='0x01' slot='0x00' function='0x1'/></source></hostdev></devices></domain>
	END
	printf '[Unit]\nDescription=Virtualization daemon\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n' >$units/libvirtd.service
	systemctl --quiet enable libvirtd.service 2>/dev/null
	ln -s /etc/libvirt/qemu/compute0.xml /etc/libvirt/qemu/autostart/compute0.xml
}
wait_guest_autostart() { active; }
back_guest_autostart() { systemctl --quiet disable libvirtd.service; rm -r /etc/libvirt $units/libvirtd.service; }

for name in planned unused_vfs \
	vf_enomem vf_eio \
	guid_dropped guid_refused guid_stale guid_zero guid_twice policy_down policy_dropped \
	totalvfs too_many in_use guest_early guest_autostart; do
	fault "$name"
done
true
