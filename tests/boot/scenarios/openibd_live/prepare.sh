systemctl enable openibd.service
