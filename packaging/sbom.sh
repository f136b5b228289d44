#!/bin/sh
# The bill of materials of the program as CycloneDX 1.5 JSON: the crates that are linked
# into it, with version, licence and checksum. Without a serial number and a time: the same
# commit gives the same bytes.
# sbom.sh VERSION COMMIT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."
sh "$here/crates.sh" |
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
		number = $2
		key = "\"" $1 "\" \"" number "\""
		if (!(key in sum)) { print "sbom: " key " is not in Cargo.lock" >"/dev/stderr"; exit 1 }
		purl = "pkg:cargo/" $1 "@" number
		printf "%s\n    {\n      \"type\": \"library\",\n      \"bom-ref\": %s,\n      \"name\": %s,\n      \"version\": %s,\n", many++ ? "," : "", text(purl), text($1), text(number)
		printf "      \"purl\": %s,\n      \"licenses\": [{ \"expression\": %s }],\n", text(purl), text(substr($0, length($1 " " $2 " ") + 1))
		printf "      \"hashes\": [{ \"alg\": \"SHA-256\", \"content\": %s }]\n    }", text(sum[key])
	}
	END { print "\n  ]\n}" }' Cargo.lock -
