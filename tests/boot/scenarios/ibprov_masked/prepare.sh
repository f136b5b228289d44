systemctl enable ibprov.service
systemctl mask ibprov.service
