# A step in each boot; what it is about is kept on the disk until the end.
set -u
. /usr/lib/bed/vf.sh
keep=/var/lib/bed
mkdir -p $keep
step=$(cat $keep/step 2>/dev/null || echo 0)
one=0001:01:00.0 two=0001:01:00.1
config=/etc/ibprov/ibprov.toml
[ -e /usr/lib/bed/long ] && last=5 || last=2
# as NAME COMMAND...: a line with its exit code, and a file with what it said.
as() {
	name=$1
	shift
	"$@" >"$keep/$name" 2>&1 </dev/null
	echo "$name: $?"
}
tool() { # NAME WORDS...: of the first function
	name=$1
	shift
	as "$name" mstconfig -d $one "$@"
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
# The tool writes: an argument of a process is the word "set".
writing() { grep -qszx 'se[t]' /proc/[0-9]*/cmdline; }
no_tool() { ! writing; }
no_tool_runs() { ! grep -qsx mstconfig /proc/[0-9]*/comm; }
# as_it_writes NAME SIGNAL: a run of ibprov gets it while the tool writes.
as_it_writes() {
	tool "$1.before" -y reset
	knobs $one/nv_ms=10
	# A session of its own, as that of a terminal.
	setsid ibprov firmware --apply >$keep/$1 2>&1 </dev/null &
	within 60 writing || echo "$1: the tool does not write"
	knobs $one/nv_ms=300
	kill "-$2" "-$!"
	wait $!
	echo "$1: $?"
	as "$1.beside" ibprov firmware
	knobs $one/nv_ms=0
	within 60 no_tool || echo "$1: the tool does not end"
	as "$1.after" ibprov firmware
	tool "$1.next" -e q NUM_OF_VFS
}
said_by_the_tool() {
	phase "what the tool says"
	tool unknown q NUM_OF_VFS NOSUCH
	tool lacking q ATS_ENABLED
	tool no-port q LINK_TYPE
	tool too-many -y set NUM_OF_VFS=9
	tool too-large -y set NUM_OF_VFS=99999
	tool no-number -y set NUM_OF_VFS=many
	tool no-word -y set SRIOV_EN=yes
	as no-function mstconfig -d 0001:1f:00.0 q NUM_OF_VFS
	tool aborted set NUM_OF_VFS=8
	knobs $one/nv_status.NVDA_SET=0x70
	tool internal -y set NUM_OF_VFS=8
	as refused ibprov firmware --apply
	knobs $one/nv_status.NVDA_SET=0x21
	tool worn -y set NUM_OF_VFS=8
	knobs $one/nv_status.NVDA_SET=0 $one/nv_status.NVQC=4
	tool no-nv q NUM_OF_VFS
	knobs $one/nv_status.NVQC=0 $one/nv_stuck=1
	tool stuck q NUM_OF_VFS
	as unreadable ibprov firmware --apply
	knobs $one/nv_stuck=0 $one/nv_current=0
	tool no-current -e q NUM_OF_VFS
	as untold ibprov firmware
	knobs $one/nv_current=1
	writes refused
	tool equal -y set SRIOV_EN=0
	knobs $one/nv_status.MFRL_SET=4
	tool power-cycle -y set NUM_OF_VFS=3
	knobs $one/nv_status.MFRL_SET=0
}

{
	case $step in
	0)
		look factory
		if [ $last = 5 ]; then
			said_by_the_tool
			# As if the refusal was in another boot.
			sed -i 's/"boot_id": .*"/"boot_id": "another"/' /var/lib/ibprov/firmware.json
			as retried ibprov firmware --apply
			phase "a run that ends while the tool writes"
			as_it_writes hangup HUP
			as_it_writes kill KILL
			tool reset -y reset
			phase "a tool that hangs"
			knobs $one/nv_ms=6000
			as hangs ibprov firmware
			knobs $one/nv_ms=0
			within 60 no_tool_runs || echo "the tool that was left does not end"
			tool hung -e q NUM_OF_VFS
			rm /var/lib/ibprov/firmware.json
		fi
		phase "written"
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
		if [ $last = 2 ]; then
			phase "what keeps the tool from running"
			chown 65534 /tmp/mstflint_lockfiles
			as foreign ibprov firmware
			chown 0 /tmp/mstflint_lockfiles
			mount -o bind /dev/null /usr/bin/mstconfig
			as toolless ibprov firmware
			umount /usr/bin/mstconfig
			# Until the next boot.
			echo integrity >/sys/kernel/security/lockdown
			as locked ibprov firmware
			tool locked.tool q NUM_OF_VFS
		fi
		if [ $last = 5 ]; then
			phase "firmware that loads nothing at a reboot"
			knobs $one/nv_load=power
			sed -i 's/NUM_OF_VFS = 4/NUM_OF_VFS = 8/' $config
			as held ibprov firmware --apply
			writes held
		fi
		;;
	3 | 4)
		look "held-$step"
		as "held-$step.apply" ibprov firmware --apply
		judged "held-$step"
		writes "held-$step"
		# The next one is a power cycle.
		[ $step = 3 ] && knobs $one/nv_load=power || knobs $one/nv_load=reboot
		;;
	5)
		look cycled
		as cycled.apply ibprov firmware --apply
		writes cycled
		;;
	esac
} >>$keep/stdout
dmesg >"$keep/dmesg.$step"
if [ "$step" -lt $last ]; then
	echo $((step + 1)) >$keep/step
	systemctl reboot
	exec sleep infinity
fi
dmesg >"$OUT/dmesg"
cp $keep/* "$OUT/"
cat $keep/stdout
