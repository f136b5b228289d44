# Results are built once, under a name that holds a hash of their inputs, in
# the user's cache folder, so that clones of the project share them. Sourced.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ibprov

# Hash of standard input, short enough for a file name.
digest() { sha256sum | cut -c1-16; }

# Content and modes of files and folders, as text for digest.
describe() { find "$@" -type f | LC_ALL=C sort | while read -r f; do sha256sum "$f" | cut -c1-64; stat -c '%a' "$f"; done; }

# once NAME SCRIPT ARGS...: the folder $cache/NAME, made by SCRIPT if it is not
# there. SCRIPT gets the folder to fill, the name that folder will have, and
# ARGS. Two callers at once make it once; one that dies leaves nothing behind
# under the final name.
once() {
	final=$cache/$1
	script=$2
	shift 2
	mkdir -p "$cache/locks"
	(
		flock 9
		if [ -d "$final" ]; then
			touch "$final" # in use: see sweep
			exit 0
		fi
		echo "image: building $final" >&2
		tmp=$(mktemp -d "$cache/.new-XXXXXX")
		trap 'rm -rf "$tmp"' EXIT
		trap 'exit 130' INT TERM
		chmod 755 "$tmp" # mktemp's 700 would become the guest's / mode
		sh "$script" "$tmp" "$final" "$@" >&2
		mv "$tmp" "$final"
	) 9>"$cache/locks/${final##*/}"
	echo "$final"
}

# Results that nobody has asked for in two weeks go.
sweep() { find "$cache" -mindepth 1 -maxdepth 1 ! -name locks -mtime +14 -exec rm -rf {} +; }
