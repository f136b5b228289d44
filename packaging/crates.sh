#!/bin/sh
# The crates that are linked into the program, one a line: NAME VERSION LICENCE. With
# `licence`, the SPDX expression of the whole program; with `vendored`, the list by which a
# Red Hat distribution says what is bundled (its RPM macros have the same from cargo).
# crates.sh [licence|vendored]
set -eu
cd "$(dirname "$0")/.."
# "A/B" is an old form of "A OR B", which SPDX does not have.
linked=$("${CARGO:-cargo}" tree --quiet --locked --offline --edges normal,no-proc-macro \
	--prefix none --format '{p} {l}')
linked=$(echo "$linked" | sed 's/ (\*)$//; s/ (proc-macro)//; s/^\(ibprov [^ ]*\) ([^)]*)/\1/; s, *\([A-Za-z0-9.-]*\)/\([A-Za-z0-9.-]*\)$, \1 OR \2,; s/^\([^ ]*\) v/\1 /' |
	LC_ALL=C sort -u)
case ${1:-} in
'') echo "$linked" | grep -v '^ibprov ' ;;
vendored) echo "$linked" | awk '$1 != "ibprov" { print $1 " v" $2 }' ;;
licence)
	# Each choice once, its names in order: all of them hold together.
	echo "$linked" | cut -d ' ' -f 3- | sed 's/ AND /\n/g' | tr -d '()' | LC_ALL=C sort -u | awk '
		{
			n = split($0, one, " OR ")
			for (i = 2; i <= n; i++) for (j = i; j > 1 && one[j] < one[j - 1]; j--) { t = one[j]; one[j] = one[j - 1]; one[j - 1] = t }
			line = one[1]
			for (i = 2; i <= n; i++) line = line " OR " one[i]
			print (n > 1 ? "(" line ")" : line)
		}' | LC_ALL=C sort -u | sed '$!s/$/ AND/' | tr '\n' ' ' | sed 's/ $/\n/'
	;;
esac
