. /usr/lib/bed/iface.sh
systemctl show -p Result --value networking.service >"$OUT/networking"
ip -br addr >"$OUT/addr"
cp /run/from-override "$OUT/from-override"
cp /run/ibprov/boot.json "$OUT/install_works.json"

ifdown ib0
# Whether the targets are reached, as TARGET STATE.
target() { # NAME TARGET
	systemctl start "ibprov-$2.target" 2>/dev/null
	echo "$1: $2 $(systemctl is-active "ibprov-$2.target")"
}
stop() { systemctl stop ibprov-online.target ibprov-wait-online.service ibprov-ready.target ibprov.service; }
mkdir -p /etc/ibprov
echo 'wait-online.timeout = "2s"' >/etc/ibprov/ibprov.toml
without_ipoib() { # NAME
	stop
	modprobe -r ib_ipoib
	systemctl restart ibprov.service
	cp /run/ibprov/boot.json "$OUT/$1.json"
}
for name in denied install_override; do
	cp "/usr/lib/bed/$name.conf" /etc/modprobe.d/site.conf
	without_ipoib "$name"
	[ "$name" != denied ] || { target denied ready; target denied online; }
done

# The RDMA half of the driver. udev has a copy of these files, and would load it.
echo "install mlx5_ib /bin/false" >/etc/modprobe.d/site.conf
udevadm control --reload
stop
modprobe -r ib_ipoib mlx5_ib
target half ready
cp /run/ibprov/boot.json "$OUT/half.json"
udevadm settle

# udev loads no drivers: its rule is masked. boot has to, the card's driver by its modalias,
# and then its RDMA half.
mkdir -p /run/udev/rules.d
ln -s /dev/null /run/udev/rules.d/80-drivers.rules
rm /etc/modprobe.d/site.conf
udevadm control --reload
stop
modprobe -r ib_ipoib mlx5_ib mlx5_core
systemctl start ibprov.service
cp /run/ibprov/boot.json "$OUT/no_autoload.json"
ended ib0
rm /run/udev/rules.d/80-drivers.rules
udevadm control --reload
ifdown ib0

# A node whose drivers a container loads, which kubelet starts.
printf 'blacklist %s\n' mlx5_core mlx5_ib ib_ipoib >/etc/modprobe.d/blacklist-ofed-modules.conf
udevadm control --reload
printf '[[port]]\npci = "0001:01:00.0"\nwait = "online"\n' >/etc/ibprov/ibprov.toml
cat >/etc/systemd/system/kubelet.service <<'END'
[Unit]
Requires=ibprov-ready.target
After=ibprov-ready.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/modprobe -a mlx5_core mlx5_ib ib_ipoib
ExecStart=/usr/bin/udevadm settle
END
health() { ibprov health --for npd >/dev/null && code=0 || code=$?; echo "$1: health $code"; }
systemctl daemon-reload
stop
modprobe -r ib_ipoib mlx5_ib mlx5_core
target container ready
systemctl start kubelet.service
echo "container: kubelet $(systemctl is-active kubelet.service)"
target loaded online
health loaded
systemctl stop kubelet.service
rm /etc/modprobe.d/blacklist-ofed-modules.conf /etc/ibprov/ibprov.toml
udevadm control --reload
modprobe -r ib_ipoib

# As after a kernel update without its modules.
find /lib/modules -name 'ib_ipoib.ko*' -delete
depmod -a
without_ipoib not_built
ibprov check --format json >"$OUT/not_built.check.json" 2>"$OUT/not_built.check.err"
echo "not_built: check $?"
