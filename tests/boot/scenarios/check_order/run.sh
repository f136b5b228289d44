# The first one warms the page cache.
ibprov check >/dev/null 2>&1
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
exit 0
