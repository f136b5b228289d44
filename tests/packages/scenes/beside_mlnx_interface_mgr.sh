# MLNX_OFED's rule for interfaces counts as an agent, and a mask of it takes it away.
rule='ACTION=="add", SUBSYSTEM=="net", DRIVERS=="*mlx*", RUN+="/bin/systemctl --no-block start mlnx_interface_mgr@$name"'
mkdir -p "$host/etc/udev/rules.d"
echo "$rule" >"$host/usr/lib/udev/rules.d/90-ib.rules"
install || fail "not installed"
is disabled ibprov.service
says "mlnx_interface_mgr is enabled on this host"
purge || fail "not purged"
ln -s /dev/null "$host/etc/udev/rules.d/90-ib.rules"
install || fail "not installed again"
is enabled ibprov.service
