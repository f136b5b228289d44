systemctl is-active ibprov.service
cp /run/ibprov/boot.json "$OUT/service.json"
