#!/bin/sh
# lane.sh NAME COMMAND...: runs one lane of tests and says how many it ran. A
# lane that fails, and one that ran nothing, is a failure.
set -eu
name=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
begin=$(date +%s)
{ "$@" 2>&1 && echo ended-well >"$log.code" || true; } | tee "$log"
count=$(sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed.*/\1 \2/p' "$log" |
	awk '{ passed += $1; failed += $2 } END { print passed + 0, failed + 0 }')
passed=${count% *} failed=${count#* }
took=$(($(date +%s) - begin))
if [ ! -e "$log.code" ]; then
	echo "lane $name: FAILED, $passed passed, $failed failed, $took s" >&2
	exit 1
fi
rm -f "$log.code"
if [ "$passed" = 0 ]; then
	echo "lane $name: FAILED, it ran no test" >&2
	exit 1
fi
echo "lane $name: $passed tests ran, all passed, $took s"
