# Modules for an initrd: sourced by what builds one. Wants $release.

# Paths of NAME and of all it needs, in loading order; with a ? after it, NAME need
# not be in this kernel. Not for use in a pipe, which would hide a failure.
closure() { # MODULE_ROOT NAME
	modprobe -d "$1" -S "$release" -C /dev/null --show-depends --ignore-install "${2%\?}" >"$1/closure" || {
		[ "$2" != "${2%\?}" ] || return 1
		echo "modules: ${2%\?} is not in $release, and need not be" >&2
	}
	sed -n 's/^insmod \([^ ]*\).*/\1/p' "$1/closure"
}

# Lays the modules named on standard input into INITRD/modules, each once, in that
# order into INITRD/order. busybox cannot unpack zstd, so all are unpacked here.
initrd_modules() { # INITRD
	mkdir -p "$1/modules"
	awk '!seen[$0]++' | while read -r file; do
		module=${file##*/}
		case $module in
		*.zst) module=${module%.zst}; zstd -dcq "$file" >"$1/modules/$module" ;;
		*.xz) module=${module%.xz}; xz -dc "$file" >"$1/modules/$module" ;;
		*) cp "$file" "$1/modules/" ;;
		esac
		echo "$module" >>"$1/order"
	done
}
