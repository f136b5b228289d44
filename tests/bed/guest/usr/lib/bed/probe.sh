# Helpers of the scenarios that look at what the kernel is asked for, to be sourced.
tracing=/sys/kernel/tracing
# probe NAME DEFINITION [FILTER]: sets one, for the rest of the boot. Each change of the kernel's
# code can go wrong on the emulator, whose other processor may run what was there before: after
# some hundred of them, beside much work, a call of address 0 was seen, and before that machines
# that hung.
probe() {
	mountpoint -q $tracing || mount -t tracefs tracefs $tracing
	echo 0 >$tracing/tracing_on
	echo 16384 >$tracing/buffer_size_kb
	echo "p:$1 $2" >>$tracing/kprobe_events
	[ -z "${3-}" ] || echo "$3" >"$tracing/events/kprobes/$1/filter"
	echo 1 >"$tracing/events/kprobes/$1/enable"
}
# traced COMMAND...: what probes see meanwhile is in $tracing/trace.
traced() {
	: >$tracing/trace
	echo 1 >$tracing/tracing_on
	"$@"
	echo 0 >$tracing/tracing_on
}
