systemctl show -p ActiveState,Result,ExecMainStatus ibprov.service >"$OUT/boot.unit"
cp /run/ibprov/boot.json "$OUT"
systemctl show -p ActiveState networking.service >"$OUT/networking"
