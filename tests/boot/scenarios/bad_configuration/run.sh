systemctl show -p ActiveState,Result,ExecMainStatus ibprov.service >"$OUT/boot.unit"
systemctl show -p ActiveState networking.service >"$OUT/networking"
