# Creates two VFs, once what waits for them says so.
until systemctl show -p StatusText --value ibprov-wait-online.service | grep "2 of 2 VFs"; do :; done >/run/waiting
echo 2 >/sys/bus/pci/devices/0001:01:00.0/sriov_numvfs
