#!/bin/sh
# What debian/copyright says of each crate in vendor/: its holders, from the texts of its
# licences or, where these name none, its authors; and its licence, from its manifest.
set -eu
cd "$(dirname "$0")/.."
for crate in vendor/*; do
	field() { sed -n "s/^$1 = \"\(.*\)\"\$/\1/p" "$crate/Cargo.toml" | head -n 1; }
	holders=$(find "$crate" -maxdepth 1 \( -iname 'licen[cs]e*' -o -iname 'copyright*' -o -iname 'copying*' \) -type f |
		LC_ALL=C sort | xargs -r -d '\n' grep -hiE '^ *copyright ' |
		grep -vE '\[?(yyyy|year)\]?|assignment|[Nn]otice|[Ll]icense|NOTICE' |
		sed 's/^ *[Cc]opyright:* *\(([Cc])\|©\)\{0,1\} *//; s/[. \r]*$//; s/[. ]*[Aa]ll rights reserved//' | grep -E '[A-Za-z]' | LC_ALL=C sort -u || :)
	if [ -z "$holders" ]; then
		holders=$(awk '/^authors = \[/ { on = 1 } on { print } on && /\]/ { exit }' "$crate/Cargo.toml" | grep -o '"[^"]*"' | tr -d '"' || :)
	fi
	[ -n "$holders" ] || holders="the developers of $(field name)"
	# As Debian writes an expression: words in lower case, a comma for parentheses.
	licence=$(field license | sed 's,\(.*[^ ]\) */ *,\1 OR ,; s/^(\(.*\)) AND /\1, AND /; s/ OR / or /g; s/ AND / and /g; s/ WITH LLVM-exception/ with LLVM exception/')
	printf '\nFiles: %s/*\nCopyright:\n' "$crate"
	echo "$holders" | sed 's/^/ /'
	echo "License: $licence"
done
