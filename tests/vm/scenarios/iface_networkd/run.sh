. /usr/lib/bed/iface.sh
scene before ib0
scene meanwhile ib1
/usr/lib/bed/appear 3
scene late ib2
echo 0001:03:00.0 >/sys/bus/pci/drivers/mlx5_core/unbind
/usr/lib/bed/appear 3
scene rebound ib2
/usr/lib/bed/appear 4
scene missed ib3
ibprov iface ib0 --dry-run >"$OUT/dry-run"
ibprov iface ib0 --dry-run --no-bus >"$OUT/dry-run.no-bus"
ibprov iface ib3 --dry-run >"$OUT/dry-run.missed"
networkctl --no-pager list >"$OUT/networkctl"
true
