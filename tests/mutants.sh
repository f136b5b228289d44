#!/bin/sh
# mutants.sh [NAME...]: each machine test is seen failing. A mutant is a patch
# in tests/mutants/ whose head says what it breaks and which tests must see it:
#     breaks: ib0 is not waited for
#     fails: vm late_rdma::with_ibprov_ib0_has_its_address
# The patch is applied to a copy of the tree, the copy is built, and exactly
# those tests are run. A mutant that no test sees, a test that cannot be built
# or started, and a machine test that no mutant breaks, are failures.
set -eu
cd "$(dirname "$0")/.."
project=$PWD
copy=${CARGO_TARGET_DIR:-$project/target}/mutants
export CARGO_TARGET_DIR="$copy/target"
mkdir -p "$copy/tree"

# Only what differs is copied, so that what was built before stays good.
git ls-files -z | tar --null -T - -cf - | tar -C "$copy/tree" -xf - --skip-old-files --warning=no-existing-file 2>/dev/null || true
git ls-files | while read -r f; do
	cmp -s "$f" "$copy/tree/$f" || cp -P --remove-destination "$f" "$copy/tree/$f"
done
cd "$copy/tree"

run_test() { # LANE TEST; its output in $copy/log
	cargo test --quiet --locked --test "$1" -- --test-threads=1 --exact "$2" >"$copy/log" 2>&1
}
survived=0 killed=0
: >"$copy/seen"
for patch in "$project"/tests/mutants/*.patch; do
	name=$(basename "$patch" .patch)
	case " $* " in "  " | *" $name "*) ;; *) continue ;; esac
	breaks=$(sed -n 's/^breaks: //p' "$patch")
	patch --quiet -p1 <"$patch"
	trap 'patch --quiet -R -p1 <"$patch"' EXIT
	for test in $(sed -n 's/^fails: \([^ ]*\) \([^ ]*\)$/\1=\2/p' "$patch"); do
		echo "${test%%=*} ${test#*=}" >>"$copy/seen"
		if run_test "${test%%=*}" "${test#*=}"; then
			echo "mutant $name ($breaks): SURVIVED: ${test#*=} passed, or there is no such test"
			survived=$((survived + 1))
		elif grep -q '^test result: FAILED\. 0 passed; 1 failed' "$copy/log"; then
			echo "mutant $name ($breaks): killed by ${test#*=}:"
			grep -A1 'panicked at' "$copy/log" | sed -n '2s/^/    /p'
			killed=$((killed + 1))
		else
			echo "mutant $name ($breaks): ${test#*=} did not run:" >&2
			tail -n 20 "$copy/log" >&2
			survived=$((survived + 1))
		fi
	done
	patch --quiet -R -p1 <"$patch"
	trap - EXIT
done

unseen=0
if [ $# = 0 ]; then
	for lane in vm boot; do
		cargo test --quiet --locked --test "$lane" -- --list 2>/dev/null | sed -n 's/: test$//p' | while read -r test; do
			grep -qx "$lane $test" "$copy/seen" || echo "$lane $test"
		done
	done >"$copy/unseen"
	unseen=$(wc -l <"$copy/unseen")
	[ "$unseen" = 0 ] || sed 's/^/never seen failing: /' "$copy/unseen"
fi
echo "mutants: $killed killed, $survived survived, $unseen tests never seen failing"
[ "$killed" -gt 0 ] && [ "$survived" = 0 ] && [ "$unseen" = 0 ]
