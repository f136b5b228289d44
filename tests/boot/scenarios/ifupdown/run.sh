systemctl show -p Id,ActiveState ibprov.service
systemctl show -p Id openibd.service
systemd-analyze verify --man=no /usr/lib/systemd/system/ibprov*.* 2>"$OUT/verify"
systemd-analyze security --no-pager ibprov.service >"$OUT/security"
