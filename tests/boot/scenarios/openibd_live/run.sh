active() { echo "$1: $(systemctl show -p ActiveState --value ibprov.service), $([ -e /run/ibprov/boot.json ] && echo "has run" || echo "has not run")"; }
systemctl disable openibd.service
systemctl enable ibprov.service
active enabled
systemctl start ibprov.service
active started
systemctl restart openibd.service
active restarted
cat /run/openibd.calls >"$OUT/calls"
ibprov status --format json >"$OUT/after.json"
