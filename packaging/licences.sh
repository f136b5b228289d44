#!/bin/sh
# The licence texts of the crates that are linked into the program, from vendor/.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."
sh "$here/crates.sh" | while read -r name number licence; do
	printf '%s %s: %s\n' "$name" "$number" "$licence"
	for file in "vendor/$name-$number"/LICEN[CS]E* "vendor/$name-$number"/COPYING*; do
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
