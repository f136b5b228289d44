systemctl is-active ibprov.service
# The report of the boot itself: the next run writes its own over it.
cp /run/ibprov/boot.json "$OUT/service.json"
ibprov --format json boot >"$OUT/by-hand.json" 2>/dev/null
