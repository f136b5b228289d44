#!/bin/sh
# The bill of materials of the program as CycloneDX 1.5 JSON: the crates that are linked
# into it, with version, licence and checksum. Without a serial number and a time: the same
# commit gives the same bytes.
# sbom.sh VERSION COMMIT
set -eu
cd "$(dirname "$0")/.."
triple=$(rustc -vV | sed -n 's/^host: //p')
"${CARGO:-cargo}" tree --quiet --locked --offline --target "$triple" --edges normal,no-proc-macro \
	--prefix none --format '{p}|{l}' | sed 's/ (\*)$//; s/ (proc-macro)//' | LC_ALL=C sort -u |
	awk -v version="$1" -v commit="$2" '
	function text(s) { gsub(/["\\]/, "\\\\&", s); return "\"" s "\"" }
	# Cargo.lock first: the checksum of each crate.
	FNR == NR {
		if ($1 == "name") name = $3
		if ($1 == "version") number = $3
		if ($1 == "checksum") { gsub(/"/, ""); sum[name " " number] = $3 }
		next
	}
	BEGIN {
		printf "{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.5\",\n  \"version\": 1,\n"
		printf "  \"metadata\": {\n    \"component\": {\n      \"type\": \"application\",\n      \"name\": \"ibprov\",\n"
		printf "      \"version\": %s,\n      \"licenses\": [{ \"expression\": \"MIT OR Apache-2.0\" }],\n", text(version)
		printf "      \"properties\": [{ \"name\": \"commit\", \"value\": %s }]\n    }\n  },\n  \"components\": [", text(commit)
	}
	{
		bar = index($0, "|")
		licence = substr($0, bar + 1)
		split(substr($0, 1, bar - 1), crate, " ")
		if (crate[1] == "ibprov") next
		number = substr(crate[2], 2)
		key = "\"" crate[1] "\" \"" number "\""
		if (!(key in sum)) { print "sbom: " key " is not in Cargo.lock" >"/dev/stderr"; exit 1 }
		# An old form of "either", which SPDX does not have.
		gsub(/\//, " OR ", licence)
		purl = "pkg:cargo/" crate[1] "@" number
		printf "%s\n    {\n      \"type\": \"library\",\n      \"bom-ref\": %s,\n      \"name\": %s,\n      \"version\": %s,\n", many++ ? "," : "", text(purl), text(crate[1]), text(number)
		printf "      \"purl\": %s,\n      \"licenses\": [{ \"expression\": %s }],\n", text(purl), text(licence)
		printf "      \"hashes\": [{ \"alg\": \"SHA-256\", \"content\": %s }]\n    }", text(sum[key])
	}
	END { print "\n  ]\n}" }' Cargo.lock -
