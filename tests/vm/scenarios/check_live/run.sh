set -u
# look NAME: what check says now, as NAME.json.
look() {
	name=$1
	shift
	ibprov check --format json "$@" >"$OUT/$name.json" 2>"$OUT/$name.err"
	echo "$name: $?"
}
# mail NAME [OPTION]: the same of an archive of this host.
mail() {
	ibprov collect ${2-} --boots 0 "$OUT/mail.tar.gz" >/dev/null 2>>"$OUT/mail.err"
	ibprov check --format json --log "$OUT/mail.tar.gz" >"$OUT/$1.mail.json" 2>>"$OUT/mail.err"
	echo "$1.mail: $?"
	rm -f "$OUT/mail.tar.gz"
}
card=/sys/kernel/debug/ibcard
pf=/sys/bus/pci/devices/0001:01:00.0
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
# A port's state changes by itself; wait for the word in sysfs.
port() { timeout 60 sh -c "until grep -q $1 $pf/infiniband/mlx5_*/ports/1/state; do sleep 0.2; done"; }
port ACTIVE

# The consumer failed in this boot.
look consumer --svg "$OUT/consumer.svg"
mail consumer

# Without it the node is healthy.
systemctl disable --now slurmd.service 2>/dev/null
systemctl reset-failed slurmd.service
rm /etc/systemd/system/slurmd.service
systemctl daemon-reload
look healthy

# moment NAME: what each verb that judges says now.
moment() {
	look "$1"
	ibprov status --format json >"$OUT/$1.status.json"
	echo "$1 status: $?"
	ibprov metrics >"$OUT/$1.prom"
	ibprov wait-online --timeout 1s >"$OUT/$1.online" 2>&1
	echo "$1 wait-online: $?"
}
carrier() { timeout 60 sh -c "until [ \"\$(cat /sys/class/net/ib0/carrier)\" = $1 ]; do sleep 0.2; done"; }

# The cable is pulled and plugged in again; the subnet manager goes and comes back.
echo "0001:01:00.0/link=down" >$card/set
port DOWN
carrier 0
moment cable-out
echo "0001:01:00.0/link=active" >$card/set
port ACTIVE
carrier 1
moment cable-in
echo "0001:01:00.0/link=init" >$card/set
port INIT
carrier 0
moment no-sm
mail no-sm --anonymize
echo "0001:01:00.0/link=active" >$card/set
port ACTIVE
carrier 1
moment sm-back

# VFs: nobody gave them GUIDs; then GUIDs and a policy that keeps them down.
echo 2 >$pf/sriov_numvfs
udevadm settle
port ACTIVE
look guid-zero
mail guid-zero --anonymize
for vf in 0 1; do
	ip link set ib0 vf $vf node_guid "02:00:00:00:00:12:0$vf:00"
	ip link set ib0 vf $vf port_guid "02:00:00:00:00:12:0$vf:01"
	ip link set ib0 vf $vf state disable
done
look policy-down
echo 0 >$pf/sriov_numvfs
udevadm settle

# The next boot: a cycle, and a unit that waits for one that waits for it. Live,
# and of the tree, as a rescue system sees it.
mkdir -p /etc/systemd/system/ibprov.service.d
printf '[Unit]\nAfter=network.target\n' >/etc/systemd/system/ibprov.service.d/x.conf
cat >/etc/systemd/system/prepare.service <<'END'
[Unit]
DefaultDependencies=no
Before=networking.service
[Service]
Type=oneshot
ExecStart=/usr/local/sbin/prepare
[Install]
WantedBy=multi-user.target
END
printf '#!/bin/sh\nsystemctl restart networking\n' >/usr/local/sbin/prepare
chmod +x /usr/local/sbin/prepare
systemctl enable prepare.service 2>/dev/null
look next-boot
look next-boot-of-tree --root /
systemctl disable prepare.service 2>/dev/null
rm -r /etc/systemd/system/ibprov.service.d /etc/systemd/system/prepare.service

# Nobody brings the ports up at the next boot.
systemctl disable ibprov.service 2>/dev/null
look disabled
systemctl enable ibprov.service 2>/dev/null

# ib_ipoib is denied, and ib0 is asked for.
ifdown ib0
modprobe -r ib_ipoib
echo "blacklist ib_ipoib" >/etc/modprobe.d/site.conf
look denied
rm /etc/modprobe.d/site.conf
modprobe ib_ipoib

# The probe of every VF fails.
echo "vf/fail.INIT_HCA=0" >$card/set
echo 2 >$pf/sriov_numvfs
udevadm settle
look vf-probe
echo "vf/fail.INIT_HCA=99" >$card/set
echo 0 >$pf/sriov_numvfs

# The probe of the PF itself fails.
echo "0001:01:00.0/fail.INIT_HCA=0" >$card/set
echo 0001:01:00.0 >/sys/bus/pci/drivers/mlx5_core/unbind
echo 0001:01:00.0 >/sys/bus/pci/drivers/mlx5_core/bind 2>/dev/null
udevadm settle
look pf-probe
exit 0
