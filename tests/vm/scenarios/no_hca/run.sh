systemctl is-active ibprov.service
