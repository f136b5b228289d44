set -u
. /usr/lib/bed/vf.sh
states() { # WHEN: how each unit is
	for unit in ibprov.service openibd.service ibprov-ready.target site-daemon.service hpc.mount needs-ports.service; do
		echo "$1: $unit $(systemctl show -p ActiveState --value "$unit")"
	done
}
runs() { journalctl --sync; journalctl -o json --no-pager MESSAGE_ID=ae6974c6aa324960b805a4bda5d71cf6 | wc -l; }
no_jobs() { [ -z "$(systemctl list-jobs --no-legend)" ]; }
did() { # WHAT: its exit code, and how often ibprov boot has run by now
	echo "$1: $2, $(runs) runs"
}
states boot
systemctl status --no-pager openibd.service >"$OUT/status"
did boot 0
systemctl restart openibd.service
did restart $?
# What requires it is started again after it; what is stopped while it starts has failed.
within 60 no_jobs
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

users="site-daemon.service site-wants.service hpc.mount needs-ports.service"
systemctl start $users
runs_of() { for unit in $users; do echo "$unit $(systemctl show -p InvocationID --value "$unit")"; done; }
# What it stops, if only to start it again: what is no longer in the run that it was in.
stops() { # WHAT COMMAND...
	what=$1
	shift
	runs_of >/run/before
	"$@"
	code=$?
	# What it starts again may come later: mounts do while the kernel reports many.
	within 60 no_jobs
	echo "$what: $code, stops $(runs_of | grep -vxFf /run/before | cut -d ' ' -f 1 | tr '\n' ' ')"
}
stops "restart ibprov" systemctl restart ibprov.service
touch /hpc/file
stops "restart openibd" systemctl restart openibd.service
ls /hpc/file 2>/dev/null
touch /hpc/file
(cd /hpc && exec sleep infinity) &
stops "restart openibd below a mount in use" systemctl restart openibd.service
ls /hpc/file 2>/dev/null
echo "the mount in use: $(systemctl is-active hpc.mount) $(findmnt -n -o FSTYPE /hpc)"
kill $!
wait

systemctl disable openibd.service
ibprov status --format json >"$OUT/disabled.json"
systemctl reenable ibprov.service
ibprov status --format json >"$OUT/reenabled.json"

# The vendor's own, for comparison.
systemctl disable ibprov.service
systemctl stop ibprov-openibd.service
systemctl enable openibd.service
systemctl daemon-reload
systemctl start openibd.service $users
stops "restart the vendor's openibd" systemctl restart openibd.service
