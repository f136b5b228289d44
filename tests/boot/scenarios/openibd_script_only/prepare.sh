rm /usr/lib/systemd/system/openibd.service
update-rc.d openibd defaults
systemctl enable ibprov.service
rm /etc/systemd/system/openibd.service
