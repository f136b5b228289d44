systemctl enable openibd.service
systemctl enable ibprov.service
