# libvirt as on a host where it is started by its socket alone.
systemctl disable libvirtd.service libvirt-guests.service
systemctl enable libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket

# Domains as libvirt keeps them; a name is the name of its file.
uuid=0
define() { # NAME DEVICES [MEMORY [OS]]
	uuid=$((uuid + 1))
	cat >"/etc/libvirt/qemu/$1.xml" <<END
<domain type='qemu'>
  <name>$1</name>
  <uuid>00000000-0000-4000-8000-$(printf %012d "$uuid")</uuid>
  <memory unit='MiB'>${3:-16}</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type>${4:-}</os>
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
for name in first last late reported crash plain 'vm; reboot' --help; do define "$name" ""; done
define broken "<disk type='file'><source file='/nowhere'/><target dev='vda' bus='virtio'/></disk>"
# One whose agent answers, one whose channel nobody opens, one without a channel.
channel="<controller type='virtio-serial'/><channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>"
linux=/usr/lib/bed/linux
define answers "$channel" 256 "<kernel>$linux/vmlinux</kernel><initrd>$linux/initrd</initrd><cmdline>quiet mitigations=off</cmdline>"
define mute "$channel"
define deaf ""
# The VF that is right, for the hook.
define handed "<hostdev mode='subsystem' type='pci' managed='yes'><source><address domain='0x0000' bus='0x4b' slot='0x00' function='0x1'/></source></hostdev>"
# libvirt would start this one by itself; here it cannot, the card being files.
define eager "$hostdev"
mkdir -p /etc/libvirt/qemu/autostart
ln -s ../eager.xml /etc/libvirt/qemu/autostart/eager.xml
