#!/bin/sh
# Installs the packages named as arguments that this machine does not have,
# with apt and the machine's own apt configuration.
set -eu
export DEBIAN_FRONTEND=noninteractive
# apt waits for dpkg's lock, but not for that of its lists: two lanes can come at once.
exec 9</var/lib/dpkg
flock 9

missing=
for package; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$state" = installed ] || missing="$missing $package"
done

# Later steps ask apt for versions: an empty list would make them fail oddly.
lists=$(apt-get indextargets --format '$(FILENAME)' 'Created-By: Packages' | head -n 1)
if [ -n "$missing" ] || [ -z "$lists" ] || ! ls "$lists"* >/dev/null 2>&1; then
	apt-get -q update >&2 9<&-
fi
[ -n "$missing" ] || exit 0
echo "need: to be installed with apt:$missing" >&2
if [ "$(id -u)" != 0 ]; then
	echo "need: not root, and these packages are missing:$missing" >&2
	exit 1
fi
# shellcheck disable=SC2086 # a list of package names
apt-get -q -o DPkg::Lock::Timeout=900 install -y --no-install-recommends $missing >&2 9<&-
