# Package lists of one suite alone, such as bookworm-backports, of the archive that
# this machine takes its own release from, in a folder of their own. Prints the
# configuration by which apt uses them. suite.sh SUITE FOLDER
set -eu
other=$1 folder=$2
. "$(dirname "$0")/distro.sh"
mkdir -p "$folder/lists/partial"
# Several images are built at the same time: apt never finds half a file, and who comes while
# the lists are fetched waits for them.
exec 9>"$folder/lock"
flock 9
for component in $archive_components; do
	apt-get indextargets --format "deb [signed-by=$keyring] \$(REPO_URI) $other \$(COMPONENT)" \
		'Created-By: Packages' "Codename: $suite" "Origin: $archive_origin" "Architecture: $arch" "Component: $component"
done | sort -u >"$folder/sources.list.new"
if [ ! -s "$folder/sources.list.new" ]; then
	echo "suite: apt on this machine has no package source of $archive_origin $suite" >&2
	exit 1
fi
cat >"$folder/apt.conf.new" <<-EOF
	Dir::Etc::sourcelist "$folder/sources.list";
	Dir::Etc::sourceparts "-";
	Dir::State::lists "$folder/lists";
	Dir::Cache::pkgcache "";
	Dir::Cache::srcpkgcache "";
	# The archive's copy of a suite that changes daily may be some weeks old. Signatures are
	# checked all the same.
	Acquire::Check-Valid-Until "false";
EOF
for file in sources.list apt.conf; do
	mv "$folder/$file.new" "$folder/$file"
done
export APT_CONFIG="$folder/apt.conf"
# Once a day: what is cached is keyed by the version that these lists name.
if [ -z "$(find "$folder/updated" -mtime -1 2>/dev/null)" ]; then
	apt-get -q update >&2
	touch "$folder/updated"
fi
echo "$folder/apt.conf"
