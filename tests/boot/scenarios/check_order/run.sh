# The first one warms the page cache. PIDs are given one after the other.
next_pid() { sh -c 'echo $$'; }
first=$(next_pid)
ibprov check >/dev/null 2>&1
echo "$first $(next_pid)" >"$OUT/started"
times >"$OUT/times.before"
ibprov check --format json >"$OUT/live.json" 2>"$OUT/live.err"
echo "live: $?"
times >"$OUT/times.after"
ibprov --root / check --format json >"$OUT/tree.json" 2>"$OUT/tree.err"
echo "tree: $?"
# The boot's goal here is another one: newer systemd has not loaded the default one.
systemctl show --no-pager --all '*' default.target >"$OUT/shown"
# The unit files as they are on disk, for the reader of files.
tar -C / -cf "$OUT/units.tar" etc/systemd etc/init.d etc/fstab run/systemd/system run/systemd/generator \
	run/systemd/generator.early run/systemd/generator.late usr/lib/systemd/system 2>/dev/null
# The same with thirty units that have failed for want of an interface.
for n in $(seq 30); do
	printf '[Service]\nType=oneshot\nExecStart=/bin/sh -c "echo cannot parse interface ib0: No such device; exit 1"\n' \
		>"/run/systemd/system/site-$n.service"
done
systemctl daemon-reload
for n in $(seq 30); do
	systemctl start "site-$n.service" 2>/dev/null
done
times >"$OUT/times.failed.before"
ibprov check --format json >"$OUT/failed.json" 2>"$OUT/failed.err"
times >"$OUT/times.failed.after"
exit 0
