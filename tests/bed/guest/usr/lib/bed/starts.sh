# Helpers of the scenarios that measure, to be sourced: which programs are started, and
# what it costs to start one.
tracing=/sys/kernel/tracing
# started NAME COMMAND...: leaves in $OUT/started.NAME the programs that anybody starts
# while it runs, a path a line. What is traced is not to be timed.
started() {
	mountpoint -q $tracing || mount -t tracefs tracefs $tracing
	started=$1
	shift
	: >$tracing/trace
	echo 1 >$tracing/events/sched/sched_process_exec/enable
	"$@"
	echo 0 >$tracing/events/sched/sched_process_exec/enable
	sed -n 's/.*sched_process_exec: filename=\([^ ]*\) .*/\1/p' $tracing/trace >"$OUT/started.$started"
}
# costs: lines of microseconds for a start, PROGRAM MICROSECONDS, by turns. What each
# does once it is started is next to nothing.
costs() {
	for round in 1 2 3 4 5 6 7 8; do
		for program in "/bin/true" "modprobe --version" "udevadm --version" "ibprov --version"; do
			begin=$(date +%s%N)
			for each in 1 2 3 4 5; do
				# shellcheck disable=SC2086 # a program and its argument
				$program >/dev/null
			done
			took=$((($(date +%s%N) - begin) / 5000))
			program=${program##*/}
			# The first fills the caches.
			[ $round = 1 ] || echo "${program% *} $took"
		done
	done >"$OUT/costs"
}
