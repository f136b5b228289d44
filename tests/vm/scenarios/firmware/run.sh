# A step in each boot; what it is about is kept on the disk until the end.
set -u
. /usr/lib/bed/vf.sh
keep=/var/lib/bed
mkdir -p $keep
step=$(cat $keep/step 2>/dev/null || echo 0)
one=0001:01:00.0 two=0001:01:00.1
config=/etc/ibprov/ibprov.toml
# as NAME COMMAND...: a line with its exit code, and a file with what it said.
as() {
	name=$1
	shift
	"$@" >"$keep/$name" 2>&1 </dev/null
	echo "$name: $?"
}
counted() { # COUNTER: by all functions of the card, in this boot
	sum=0
	for file in /sys/kernel/debug/ibcard/0001:*/counters; do
		sum=$((sum + $(sed -n "s/^$1 //p" "$file")))
	done
	echo $sum
}
writes() { echo "$1 writes: $(counted nv_write)"; }
look() { # NAME: what the kernel has found
	first total "$pci/$one/sriov_totalvfs"
	first port "$pci/$one/class"
	first other "$pci/$two/class"
	echo "$1: $total $port $other"
}
# judged NAME: what others say of the settings, and whether they have asked the card.
judged() {
	before=$(counted vsec)
	as "$1.status" ibprov status
	as "$1.check" ibprov check
	as "$1.plan" ibprov plan
	echo "$1 vsec: $(($(counted vsec) - before))"
}
none_at_work() { [ -z "$(systemctl list-units --no-legend --state=activating 'ibprov-pf@*')" ]; }

{
	case $step in
	0)
		look factory
		as shown ibprov firmware
		judged before
		as apply ibprov firmware --apply
		as other ibprov firmware --format json $two
		judged written
		;;
	1)
		look loaded
		within 60 none_at_work || echo "ibprov-pf@ does not end"
		facts $one >$keep/facts
		as wanted ibprov firmware
		as again ibprov firmware --apply
		judged loaded
		writes loaded
		sed -i 's/"ETH"/"IB"/' $config
		as back ibprov firmware --apply
		writes back
		;;
	2)
		look back-again
		as end ibprov firmware --apply
		writes end
		;;
	esac
} >>$keep/stdout
if [ "$step" -lt 2 ]; then
	echo $((step + 1)) >$keep/step
	systemctl reboot
	exec sleep infinity
fi
dmesg >"$OUT/dmesg"
cp $keep/* "$OUT/"
cat $keep/stdout
