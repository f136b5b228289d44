#!/bin/sh
# mutants.sh [NAME...]: each machine test is seen failing. A mutant is a file in
# tests/mutants: what it breaks, which tests must see it, and, each after an empty line,
# the texts that it replaces:
#     breaks: a unit that hangs in its start is taken for one that is up
#     fails: boot order::a_unit_that_hangs_is_waited_for
#
#     -(ActiveState::Activating, _) => Phase::Starting,
#     +(ActiveState::Activating, _) => Phase::Active,
# The text of the lines "-" is in the files of $where exactly once, in any place of a line;
# one of several lines has them as they are, indentation too. The text of the lines "+"
# replaces it; if there are none, the lines that have it are removed. A mutant says neither
# file nor line, and of the surroundings only what makes its text the only one.
# The mutant is made in a copy of the tree, the agent is built there, and
# exactly those tests are run, those of one lane in one process, so that they
# share their boots. A mutant that no test sees or that cannot be built, and a
# machine test that no mutant breaks, are failures. The tests themselves are
# built once, before: no mutant is in Rust code below tests/. A test of lane
# `older` is one of lane vm in the older world of `make test-older`, one of lane `lib` a unit test.
# mutants.sh --check only tries whether each text is there once, and says for each mutant
# that cannot be made what it lacks.
set -eu
cd "$(dirname "$0")/.."
where="Cargo.toml src units udev-rules packaging docs/examples tests/bed tests/boot tests/vm"
project=$PWD
copy=${CARGO_TARGET_DIR:-$project/target}/mutants
mkdir -p "$copy/tree"
# Regular files: what a link leads to counts once.
# shellcheck disable=SC2086 # a list of paths
git ls-files -s -- $where ':!*.md' ':!tests/*.rs' | sed -n 's/^100[^\t]*\t//p' >"$copy/where"
mutate() { LC_ALL=C awk -v list="$copy/where" -f "$project/tests/mutants.awk" "$@"; }
if [ "$*" = --check ]; then
	mutate tests/mutants/*
	exit
fi
# Of a run that was killed.
rm -rf "$copy/before"
mkdir "$copy/before"
export CARGO_TARGET_DIR="$copy/target"
# Quick to build: a mutant's code counts, not its speed.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1
export CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_INCREMENTAL=true
export RUST_BACKTRACE=0 CARGO_TERM_COLOR=never

# Only what differs is copied, so that what was built before stays good; what
# is gone from the project goes from the copy.
git ls-files >"$copy/files"
while read -r f; do
	[ -e "$f" ] || [ -L "$f" ] || continue
	mkdir -p "$copy/tree/$(dirname "$f")"
	cmp -s "$f" "$copy/tree/$f" || cp -P --remove-destination "$f" "$copy/tree/$f"
done <"$copy/files"
cd "$copy/tree"
find . -type f | sed 's,^\./,,' | grep -vxF -f "$copy/files" | while read -r f; do rm "$f"; done

for lane in vm boot; do
	cargo test --locked --no-run --test "$lane" >"$copy/log" 2>&1 || { cat "$copy/log"; exit 1; }
	sed -n 's/^ *Executable .*(\(.*\))$/\1/p' "$copy/log" >"$copy/$lane.program"
done

undo() {
	cp -R "$copy/before/." .
	rm -r "$copy/before"
	mkdir "$copy/before"
}
survived=0 killed=0
: >"$copy/seen"
for mutant in "$project"/tests/mutants/*; do
	name=$(basename "$mutant")
	case " $* " in "  " | *" $name "*) ;; *) continue ;; esac
	echo "mutant $name: $(sed -n 's/^breaks: //p' "$mutant")"
	trap undo EXIT
	sed -n 's/^fails: //p' "$mutant" | sed 's/^older /vm /' >>"$copy/seen"
	if ! { mutate -v keep="$copy/before" "$mutant" && make -s release; } >"$copy/log" 2>&1; then
		survived=$((survived + 1))
		echo "    CANNOT BE BUILT:"
		tail -n 20 "$copy/log"
		undo
		trap - EXIT
		continue
	fi
	for lane in $(sed -n 's/^fails: \([^ ]*\) .*/\1/p' "$mutant" | sort -u); do
		tests=$(sed -n "s/^fails: $lane //p" "$mutant")
		program=$lane world=
		if [ "$lane" = older ]; then
			built=$(sh tests/vm/image/agent.sh bullseye)
			program=vm world="IBPROV_RELEASE=$built IBPROV_ROOT_SUITE=bullseye IBPROV_KERNEL_SUITE=bullseye"
		fi
		if [ "$lane" = tree ] || [ "$lane" = lib ]; then
			# Those have the agent of their own build.
			target=--lib
			[ "$lane" = lib ] || target="--test $lane"
			# shellcheck disable=SC2086 # a list of tests, and two words
			cargo test --locked $target -- --exact $tests >"$copy/$name.$lane.log" 2>&1 || true
		else
			# shellcheck disable=SC2086 # a list of tests, and one of variables
			env $world "$(cat "$copy/$program.program")" --test-threads=1 --include-ignored --exact $tests >"$copy/$name.$lane.log" 2>&1 || true
		fi
		for test in $tests; do
			if grep -q "^test $test \.\.\. FAILED" "$copy/$name.$lane.log"; then
				killed=$((killed + 1))
				echo "    killed by $lane $test:"
				grep -A 1 "^thread '$test'.* panicked at" "$copy/$name.$lane.log" | sed -n '2s/^\(.\{0,150\}\).*/        \1/p'
			elif grep -q "^test $test \.\.\. ok" "$copy/$name.$lane.log"; then
				survived=$((survived + 1))
				echo "    SURVIVED $lane $test"
			else
				survived=$((survived + 1))
				echo "    NOT RUN $lane $test:"
				tail -n 20 "$copy/$name.$lane.log"
			fi
		done
	done
	undo
	trap - EXIT
done

unseen=0
if [ $# = 0 ]; then
	for lane in vm boot; do
		"$(cat "$copy/$lane.program")" --list | sed -n 's/: test$//p' | while read -r test; do
			grep -qx "$lane $test" "$copy/seen" || echo "$lane $test"
		done
	done >"$copy/unseen"
	unseen=$(wc -l <"$copy/unseen")
	[ "$unseen" = 0 ] || sed 's/^/never seen failing: /' "$copy/unseen"
fi
echo "mutants: $killed tests seen failing, $survived not, $unseen tests have no mutant"
[ "$killed" -gt 0 ] && [ "$survived" = 0 ] && [ "$unseen" = 0 ]
