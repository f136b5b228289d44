# libvirt as on a host where it is started by its socket alone.
systemctl disable libvirtd.service libvirt-guests.service
systemctl enable libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket

# Domains as libvirt keeps them; a name is the name of its file.
uuid=0
define() { # NAME DEVICES
	uuid=$((uuid + 1))
	cat >"/etc/libvirt/qemu/$1.xml" <<END
<domain type='qemu'>
  <name>$1</name>
  <uuid>00000000-0000-4000-8000-00000000000$uuid</uuid>
  <memory unit='MiB'>16</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type></os>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    $2
  </devices>
</domain>
END
}
mkdir -p /etc/libvirt/qemu
hostdev="<hostdev mode='subsystem' type='pci' managed='yes'><source><address domain='0x0000' bus='0x4b' slot='0x00' function='0x2'/></source></hostdev>"
for name in first last late reported crash 'vm; reboot' --help; do define "$name" ""; done
define broken "<disk type='file'><source file='/nowhere'/><target dev='vda' bus='virtio'/></disk>"
# libvirt would start this one by itself; here it cannot, the card being files.
define eager "$hostdev"
mkdir -p /etc/libvirt/qemu/autostart
ln -s ../eager.xml /etc/libvirt/qemu/autostart/eager.xml
