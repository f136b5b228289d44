# ib0 does come in the end, with or without ibprov.
udevadm wait --timeout=40 /sys/class/net/ib0 || exit 1
udevadm settle
udevadm info --query=property --property=USEC_INITIALIZED --value /sys/class/net/ib0 >"$OUT/ib0-usec"
ip -br addr >"$OUT/addr"
systemctl is-active networking.service >"$OUT/networking"
if command -v ibprov >/dev/null; then
	ibprov status -v >"$OUT/status" 2>&1
fi
exit 0
