. /usr/lib/bed/iface.sh
ended ib0
echo "root: $(findmnt -n -o OPTIONS / | cut -d, -f1)"
echo "var: $(findmnt -n -o FSTYPE /var)"
ibprov status >"$OUT/status" 2>&1
echo "status: $?"
ibprov plan >"$OUT/plan" 2>&1
echo "plan: $?"
ibprov apply >"$OUT/apply" 2>&1
echo "apply: $?"
ibprov plan --pin >"$OUT/pin" 2>&1
echo "pin: $?"
ibprov migrate --apply >"$OUT/migrate" 2>&1
echo "migrate: $?"
ibprov collect --timeout 60s /var/collect.tar.gz >"$OUT/collect" 2>&1
echo "collect: $?"
true
