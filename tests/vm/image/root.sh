# A root file system of a release, from the host's own package sources, as a
# folder. root.sh OUT FINAL SUITE PACKAGE...
set -eu
out=$1 release=$3
shift 3
here=$(dirname "$0")
. "$here/distro.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# apt tells where the machine takes its packages from, whatever form and file
# its configuration has. Third-party archives are left out by their origin.
for component in $archive_components; do
	apt-get indextargets --format "deb [signed-by=$keyring] \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" \
		'Created-By: Packages' "Origin: $archive_origin" "Architecture: $arch" "Component: $component"
done | sort -u >"$work/sources.list"
if [ ! -s "$work/sources.list" ]; then
	echo "root: apt on this machine has no package source of origin $archive_origin" >&2
	exit 1
fi
# A proxy, if the machine uses one, and what suite.sh says of a suite's age.
apt-config dump | grep -iE '^Acquire::(https?::|Check-Valid-Until)' >"$work/apt.conf" || true

mmdebstrap --quiet --mode=root --variant=essential --format=directory \
	--aptopt="$work/apt.conf" \
	--dpkgopt='path-exclude=/usr/share/man/*' \
	--dpkgopt='path-exclude=/usr/share/doc/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' \
	--include="$(echo "$*" | tr ' ' ,)" \
	"$release" "$out/root" - <"$work/sources.list"
