systemctl enable systemd-networkd.service
