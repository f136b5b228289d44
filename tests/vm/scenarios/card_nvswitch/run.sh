set -u
. /usr/lib/bed/vf.sh
plain=0001:01:00.0 bridge=0001:02:00.0 slow=0001:03:00.0 failed=0001:04:00.0
keep() { # NAME COMMAND...: what it says, and its exit code
	kept=$1
	shift
	"$@" >"$OUT/$kept" 2>"$OUT/$kept.error"
	echo "$kept: $?"
}
modules() { lsmod | sed -n 's/^\(ib_[a-z]*\) .*/\1/p' | sort | grep -e ib_umad -e ib_ipoib; }
netdev() { ls "$pci/$1/net"; }

phase "as booted"
cat /run/ibprov/boot.json >"$OUT/first.json"
keep status ibprov status -v
keep status.json ibprov status --format json
keep online.json ibprov wait-online --timeout 60s --state link --format json
modules >"$OUT/modules"
for address in $plain $bridge $slow $failed; do
	cat "/run/ibprov/vpd/$address.json"
	echo
done >"$OUT/kept"
systemctl show -p Result --value ibprov.service >"$OUT/result"

phase "its interface"
udevadm settle
none_at_work() { [ -z "$(systemctl list-units --no-legend --state=activating 'ibprov-iface@*')" ]; }
within 60 none_at_work || echo "an instance of ibprov-iface@ does not end"
systemctl list-units --no-legend --state=failed >"$OUT/failed"
keep iface ibprov iface "$(netdev $bridge)"
path=$(readlink -f "/sys/class/net/$(netdev $bridge)")
keep iface.unit ibprov iface --device "$path"

phase "a plan for it"
mkdir -p /run/plan
cat >/run/plan/plan.toml <<-EOT
	[[pf]]
	pci = "$bridge"
	vfs = 2
	guid.template = "02:00:00:70:00:{kind:8}:{vf:16}"
EOT
keep plan ibprov plan --config /run/plan/plan.toml
keep apply ibprov apply --config /run/plan/plan.toml

phase "a run again, from what is kept"
keep again ibprov boot --format json

phase "bridges alone"
# The others are kept away from everybody.
modprobe pci-stub
for address in $plain $slow; do
	echo $address >"$pci/$address/driver/unbind"
	echo pci-stub >"$pci/$address/driver_override"
	echo $address >/sys/bus/pci/drivers/pci-stub/bind
done
modprobe -r ib_ipoib ib_umad
udevadm settle
modules >"$OUT/modules.none"
keep alone ibprov boot --format json
modules >"$OUT/modules.alone"
for process in /proc/[0-9]*/cmdline; do tr '\0' ' ' <"$process"; echo; done 2>/dev/null | grep "ibprov worke[r]" >"$OUT/workers"
dmesg >"$OUT/dmesg"
true
