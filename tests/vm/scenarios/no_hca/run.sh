systemctl is-active ibprov.service
ibprov --format json boot >"$OUT/by-hand.json" 2>/dev/null
