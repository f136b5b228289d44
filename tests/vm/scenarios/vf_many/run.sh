set -u
. /usr/lib/bed/vf.sh
pf=0000:01:00.0
udevadm settle
uname -r >"$OUT/release"
facts "$pf" >"$OUT/fresh"

# A program that offers the kernel a page, one that offers what many do, and one that
# offers as much as ibprov.
for size in 4096 8192 65536; do
	echo "offered $size: $(/usr/lib/bed/links $size)"
done

phase "run again"
counters >"$OUT/counters.before"
apply again
counters >"$OUT/counters.after"
facts "$pf" >"$OUT/again"
ibprov status --format json >"$OUT/status.json" 2>"$OUT/status.log"

phase "other GUIDs"
sed 's/02:00:00:70/02:00:00:71/' /etc/ibprov/ibprov.toml >/run/other.toml
systemctl mask --runtime --quiet "ibprov-pf@.service"
apply other --config /run/other.toml
facts "$pf" >"$OUT/other"
dmesg >"$OUT/dmesg"
phase end
