set -u
. /usr/lib/bed/iface.sh
has_address() { ip -br addr show ib0 | grep -q 10.3.0.1/24; }
within 60 has_address || echo "no address"
ip -br addr show ib0 >"$OUT/addr"
ls /run/systemd/network >"$OUT/written"
systemctl show -p ActiveEnterTimestampMonotonic --value netplan-configure.service >"$OUT/configured"
systemctl show -p InactiveExitTimestampMonotonic --value ibprov.service >"$OUT/boot-began"
ibprov status --format json >"$OUT/status.json"
ibprov iface ib0 --dry-run >"$OUT/dry-run"
true
