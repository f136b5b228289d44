set -u
states() { # WHEN: how each unit is
	for unit in ibprov.service openibd.service ibprov-ready.target site-daemon.service hpc.mount needs-ports.service; do
		echo "$1: $unit $(systemctl show -p ActiveState --value "$unit")"
	done
}
runs() { journalctl --sync; journalctl -o json --no-pager MESSAGE_ID=ae6974c6aa324960b805a4bda5d71cf6 | wc -l; }
did() { # WHAT: its exit code, and how often ibprov boot has run by now
	echo "$1: $2, $(runs) runs"
}
states boot
systemctl status --no-pager openibd.service >"$OUT/status"
did boot 0
systemctl restart openibd.service
did restart $?
systemctl stop openibd.service
did stop $?
states stopped
# The port is no longer expected: ibprov ends with 0.
rm -f /etc/ibprov/ibprov.toml
systemctl start openibd.service
did start $?
systemctl start needs-ports.service
did needs-ports $?
systemctl start site-daemon.service hpc.mount
states mended
systemctl disable openibd.service
ibprov status --format json >"$OUT/disabled.json"
systemctl reenable ibprov.service
ibprov status --format json >"$OUT/reenabled.json"
