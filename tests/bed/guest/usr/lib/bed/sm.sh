# Helpers of the scenarios about subnet managers, to be sourced after vf.sh.
# port_guid PCI: that of its port 1, 16 digits.
port_guid() {
	first gid $pci/"$1"/infiniband/*/ports/1/gids/0
	echo "${gid#*:*:*:*:}" | tr -d :
}
entry() { # GUID PRIORITY [LINE]
	printf '[[subnet-manager]]\nport-guid = "%s"\npriority = %s\n%s\n' "$1" "$2" "${3-}"
}
trigger() {
	udevadm trigger -s infiniband_mad
	udevadm settle
}
instances() { systemctl list-units --all --plain --no-legend 'ibprov-opensm@*' | sort; }
# is GUID STATE: by status.
is() {
	colons=$(echo "$1" | sed 's/..../&:/g; s/:$//')
	ibprov status --format json | tr -d ' \n' |
		grep -q "\"port_guid\":\"$colons\",\"priority\":[0-9]*,[^}]*\"state\":\"$2\""
}
# unit_of PCI: that of its port 1.
unit_of() {
	device=$(cd -P $pci/"$1"/infiniband_mad/issm* && pwd)
	systemd-escape --path --template=ibprov-opensm@.service "$device"
}
# advised: what status says to start.
advised() { ibprov status | sed -n "s/^ *run: \(systemctl restart '\{0,1\}ibprov-opensm@.*\)/\1/p" | sort -u; }
