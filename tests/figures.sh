#!/bin/sh
# figures.sh: how large the program is, room by room, and what is written more than once: types
# per noun, verdict enums, and the files that a new finding, key or log rule touches. It tells
# and judges nothing.
set -eu
cd "$(dirname "$0")/.."

# Modules that are compiled for tests only: `#[cfg(test)]` before `mod NAME;`.
for_tests() {
	git ls-files 'src/*.rs' | xargs awk '
		FNR == 1 { dir = FILENAME; sub(/\/mod\.rs$/, "", dir); sub(/\.rs$/, "", dir); gate = 0 }
		FILENAME == "src/lib.rs" && FNR == 1 { dir = "src" }
		gate && match($0, /mod [a-z0-9_]+;/) {
			name = substr($0, RSTART + 4, RLENGTH - 5)
			print dir "/" name ".rs"
			print dir "/" name "/"
		}
		!/^[ \t]*#\[/ { gate = 0 }
		/#\[cfg\(test\)\]/ { gate = 1 }'
}

rooms() {
	for_tests >"$list"
	git ls-files 'src/*.rs' | xargs awk -v list="$list" '
		BEGIN { while ((getline name <list) > 0) only[++count] = name }
		FNR == 1 {
			room = FILENAME; sub(/^src\//, "", room); sub(/(\/|\.rs).*/, "", room)
			files[room]++; in_tests = 0; gate = 0
			for (i = 1; i <= count; i++) if (index(FILENAME, only[i]) == 1) in_tests = 1
		}
		/^[ \t]*$/ { next }
		/^#\[cfg\(test\)\]/ { gate = 1 }
		gate && /^(pub(\([a-z]+\))? )?mod [a-z_]+ \{/ { in_tests = 1 }
		in_tests { tests[room]++; next }
		/^[ \t]*\/\// { comments[room]++; next }
		{ code[room]++ }
		!/^#\[/ { gate = 0 }
		END {
			for (r in files) printf "%s %d %d %d %d\n", r, code[r], comments[r], tests[r], files[r]
		}' | sort -k2,2nr | awk '
		BEGIN { printf "%-12s %7s %8s %7s %6s\n", "room", "code", "comments", "tests", "files" }
		{ printf "%-12s %7d %8d %7d %6d\n", $1, $2, $3, $4, $5 }
		{ code += $2; comments += $3; tests += $4; files += $5 }
		END { printf "%-12s %7d %8d %7d %6d\n", "all", code, comments, tests, files }'
}

types() { # NOUN PATTERN: structs and enums whose name has it
	printf '%-26s %4d\n' "$1" "$(git grep -hE "^ *(pub(\([a-z]+\))? )?(struct|enum) " -- src |
		sed -E 's/.*(struct|enum) ([A-Za-z0-9]+).*/\2/' | sort -u | grep -cE "$2" || true)"
}

touched() { # WHAT TEXT: files that an example of it is named in
	printf '%-26s %4d  (%s)\n' "$1" "$(git grep -lE "$2" -- . ':!CHANGELOG.md' | wc -l)" "$3"
}

list=$(mktemp)
trap 'rm -f "$list"' EXIT
rooms
echo
echo "types, by what their names have"
types VF 'V[Ff]'
types port 'Port'
types "interface or netdev" 'Iface|Interface|Net[Dd]ev'
types "why not" 'Lack|Cause|Problem|Refus|Fail|Trouble|Undone|Deferred|Hindrance|Why|Reason'
types finding 'Finding'
printf '%-26s %4d\n' "verdict enums" "$(git grep -hE '^ *(pub(\([a-z]+\))? )?[A-Za-z]*Verdict \{|^ *(pub(\([a-z]+\))? )?enum [A-Za-z]*Verdict' -- src | wc -l)"
echo
echo "files that one of these is named in"
touched "a finding" 'rdma-other-namer|RdmaOtherNamer' rdma-other-namer
touched "a key" 'wait.online.*stable|stable_sec' wait-online.stable
touched "a log rule" 'module-init-slow|MODULE_INIT_SLOW|ModuleInitSlow' module-init-slow
