systemctl enable openibd.service
systemctl enable ibprov.service
systemctl disable openibd.service
