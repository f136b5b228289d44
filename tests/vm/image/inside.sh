#!/bin/sh
# Runs a command in the root of another suite. What it writes there is gone at its end; each
# PATH is a folder of this machine, which has the same name in there.
# inside.sh ROOT PATH... -- COMMAND...
set -eu
export root="$1"
shift
# The root is shared by whoever builds: what is mounted and made stays in this namespace.
exec unshare --mount --propagation private sh -euc '
	top=$(mktemp -d)
	mount -t tmpfs none "$top"
	mkdir "$top/upper" "$top/work" "$top/root"
	mount -t overlay -o "lowerdir=$root,upperdir=$top/upper,workdir=$top/work" none "$top/root"
	while [ "$1" != -- ]; do
		mkdir -p "$top/root$1"
		mount --bind "$1" "$top/root$1"
		shift
	done
	shift
	mkdir -p "$top/root/dev" "$top/root/proc"
	mount --bind /dev "$top/root/dev"
	mount -t proc proc "$top/root/proc"
	exec chroot "$top/root" "$@"' inside "$@"
