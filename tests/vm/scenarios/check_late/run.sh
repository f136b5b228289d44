udevadm wait --timeout=40 /sys/class/net/ib0 || exit 1
udevadm settle
ibprov check --format json --svg "$OUT/late.svg" >"$OUT/late.json" 2>"$OUT/late.err"
echo "late: $?"
exit 0
