systemctl enable openibd.service
systemctl disable openibd.service
systemctl mask openibd.service
systemctl enable ibprov.service || echo "refused: $?"
