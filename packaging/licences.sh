#!/bin/sh
# The licence texts of the crates that are linked into the program, from vendor/.
set -eu
cd "$(dirname "$0")/.."
triple=$(rustc -vV | sed -n 's/^host: //p')
"${CARGO:-cargo}" tree --quiet --locked --offline --target "$triple" --edges normal,no-proc-macro \
	--prefix none --format '{p} {l}' | sed 's/ (\*)$//; s/ (proc-macro)//' | LC_ALL=C sort -u |
	while read -r name number licence; do
		[ "$name" != ibprov ] || continue
		printf '%s %s: %s\n' "$name" "${number#v}" "$licence"
		for file in "vendor/$name-${number#v}"/LICEN[CS]E* "vendor/$name-${number#v}"/COPYING*; do
			[ -f "$file" ] || continue
			# The texts of these two are in the package already.
			case $(head -c 400 "$file" | tr -s ' \n' ' ') in
			*'Apache License Version 2.0'*) continue ;;
			esac
			printf '\n'
			sed 's/^/    /; s/ *$//; s/\r//' "$file"
		done
		printf '\n'
	done
