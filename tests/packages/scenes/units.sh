# systemd and udev of this release take every unit and rule of the package as it is.
install || fail "not installed"
for unit in "$host"/usr/lib/systemd/system/ibprov*; do
	unit=${unit##*/}
	# Manuals are not in this root.
	on systemd-analyze verify --man=no "$unit" >"$said" 2>&1 || fail "$unit"
	[ ! -s "$said" ] || fail "$unit"
done
# udevadm knows this since systemd 254.
if on udevadm verify --help >/dev/null 2>&1; then
	on udevadm verify --no-style /usr/lib/udev/rules.d/90-ibprov.rules >"$said" 2>&1 || fail "the rules"
fi
