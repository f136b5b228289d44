#!/bin/sh
# run.sh SECONDS [TARGET...]: builds the fuzz targets, seeds them from the tests, runs each
# for so long on one core, minimises its corpus, and says what it did.
# What a target found lies in fuzz/artifacts/TARGET; `run.sh` fails then.
# With FUZZ_KEEP=1 it adds to fuzz/kept those short inputs that reach code which no seed
# reaches: they are seeds from then on, and tests/fuzz.rs runs them.
# It needs no nightly compiler: libFuzzer looks for new edges and compared values, which
# stable rustc instruments too. Address sanitizer is not needed for Rust without unsafe.
set -eu
seconds=${1:?usage: run.sh SECONDS [TARGET...]}
shift
cd "$(dirname "$0")/.."
out=${CARGO_TARGET_DIR:-fuzz/target}/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
[ $# -gt 0 ] || set -- config pins names logs intake kernel netlink udev units guests \
	import stacks reports host opensm firmware

# With --target, build scripts and macros are left without the flags.
flags='--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4'
flags="$flags -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags="$flags -Cllvm-args=-sanitizer-coverage-pc-table"
flags="$flags -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=4"
RUSTFLAGS="$flags" CARGO_TARGET_DIR=$out cargo build --quiet --locked --release --target "$host" \
	--manifest-path fuzz/Cargo.toml
fuzz=$out/$host/release/ibprov-fuzz

TMPDIR=$(mktemp -d "$( [ -d /dev/shm ] && echo /dev/shm || echo /tmp)/ibprov-fuzz.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT TERM
failed=
for target; do
	corpus=fuzz/corpus/$target found=fuzz/artifacts/$target log=$TMPDIR/$target.log
	mkdir -p "$corpus" "$found"
	export IBPROV_FUZZ="$target"
	IBPROV_FUZZ_SEEDS=$TMPDIR/seeds IBPROV_FUZZ_WORDS=$TMPDIR/dictionary "$fuzz"
	# One core: no -fork, no second job. Memory and time of one input are bounded.
	if ! nice -n 10 "$fuzz" "$corpus" "$TMPDIR/seeds" \
		-max_total_time="$seconds" -timeout=5 -rss_limit_mb=512 -max_len=65536 \
		-len_control=50 -dict="$TMPDIR/dictionary" \
		-artifact_prefix="$found/" -print_final_stats=1 >"$log" 2>&1; then
		failed="$failed $target"
		grep -E -A6 'panicked|^==.*ERROR|^SUMMARY|Test unit written' "$log" | head -n 40 || :
	fi
	awk -v name="$target" '
		/cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") cov = $(i+1); if ($i == "ft:") ft = $(i+1) } }
		/stat::number_of_executed_units/ { runs = $2 }
		/stat::peak_rss_mb/ { rss = $2 }
		/^Done/ { runs = $2; took = $5 }
		END { printf "%-9s %10d executions, coverage %6d, features %6d, peak %4d MB, %s s\n", name, runs, cov, ft, rss, took }
	' "$log"
	# The smallest set of inputs that reaches as much is what the next run begins with.
	mkdir "$TMPDIR/small"
	if nice -n 10 "$fuzz" -merge=1 -timeout=5 -rss_limit_mb=512 \
		"$TMPDIR/small" "$corpus" "$TMPDIR/seeds" >"$log.merge" 2>&1; then
		rm -rf "$corpus"
		cp -r "$TMPDIR/small" "$corpus"
	fi
	if [ "${FUZZ_KEEP:-}" = 1 ]; then
		# Edges alone: how often one is passed would keep thousands.
		mkdir "$TMPDIR/reached"
		cp "$TMPDIR/seeds"/* "$TMPDIR/reached"
		nice -n 10 "$fuzz" -merge=1 -use_counters=0 -timeout=5 -rss_limit_mb=512 -max_len=160 \
			"$TMPDIR/reached" "$corpus" >"$log.keep" 2>&1 || { tail "$log.keep"; exit 1; }
		rm -f "$TMPDIR/reached"/seed-*
		IBPROV_FUZZ_KEEP=$TMPDIR/reached "$fuzz"
	fi
	rm -rf "$TMPDIR/small" "$TMPDIR/seeds" "$TMPDIR/reached"
done
[ -z "$failed" ] || { echo "found something:$failed (fuzz/artifacts)" >&2; exit 1; }
