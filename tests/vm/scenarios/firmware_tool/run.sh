# Two boots; what each is about is kept on the disk until the end.
set -u
. /usr/lib/bed/vf.sh
keep=/var/lib/bed
mkdir -p $keep
one=0001:01:00.0 two=0001:01:00.1
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
writes() { # of settings, since this boot
	sum=0
	for file in /sys/kernel/debug/ibcard/0001:*/counters; do
		sum=$((sum + $(sed -n 's/^nv_write //p' "$file")))
	done
	echo "$1 writes: $sum"
}
look() { # NAME: what the kernel has found
	first total "$pci/$one/sriov_totalvfs"
	first port "$pci/$one/class"
	first other "$pci/$two/class"
	echo "$1: $total $port $other"
}
if [ ! -e $keep/second ]; then
	{
		look factory
		tool first -e q SRIOV_EN NUM_OF_VFS LINK_TYPE_P2
		phase "what is refused"
		tool unknown q NUM_OF_VFS NOSUCH
		tool lacking q ATS_ENABLED
		tool no-port q LINK_TYPE
		tool too-many -y set NUM_OF_VFS=9
		tool too-large -y set NUM_OF_VFS=99999
		tool aborted set NUM_OF_VFS=8
		knobs $one/nv_status.NVDA_SET=0x70
		tool internal -y set NUM_OF_VFS=8
		knobs $one/nv_status.NVDA_SET=0x21
		tool worn -y set NUM_OF_VFS=8
		knobs $one/nv_status.NVDA_SET=0 $one/nv_status.NVQC=4
		tool no-nv q NUM_OF_VFS
		knobs $one/nv_status.NVQC=0 $one/nv_stuck=1
		tool stuck q NUM_OF_VFS
		knobs $one/nv_stuck=0 $one/nv_current=0
		tool no-current -e q NUM_OF_VFS
		knobs $one/nv_current=1
		writes refused
		phase "what is written"
		knobs $one/nv_status.MFRL_SET=4
		tool power-cycle -y set NUM_OF_VFS=3
		knobs $one/nv_status.MFRL_SET=0
		tool set -y set SRIOV_EN=1 NUM_OF_VFS=4 LINK_TYPE_P2=ETH
		as other mstconfig -d $two -e q SRIOV_EN NUM_OF_VFS
		writes first
	} >>$keep/stdout
	touch $keep/second
	systemctl reboot
	exec sleep infinity
fi
{
	look loaded
	tool second -e q SRIOV_EN NUM_OF_VFS LINK_TYPE_P2
	tool reset -y reset
	tool after-reset -e q SRIOV_EN NUM_OF_VFS LINK_TYPE_P2
	writes second
	phase "a tool that is killed"
	knobs $one/nv_ms=200
	mstconfig -d $one q >/dev/null 2>&1 &
	before=$(sed -n 's/^vsec //p' /sys/kernel/debug/ibcard/$one/counters)
	at_work() { [ "$(sed -n 's/^vsec //p' /sys/kernel/debug/ibcard/$one/counters)" -gt $((before + 1000)) ]; }
	within 20 at_work || echo "the tool does not begin"
	kill -KILL $!
	wait
	knobs $one/nv_ms=0
	tool killed q NUM_OF_VFS
} >>$keep/stdout
dmesg >"$OUT/dmesg"
cp $keep/* "$OUT/"
cat $keep/stdout
