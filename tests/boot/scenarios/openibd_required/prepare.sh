systemctl enable openibd.service
systemctl disable openibd.service
systemctl enable ibprov.service
mkdir /hpc
