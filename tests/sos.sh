#!/bin/sh
# Debian's sos collects what ibprov shows of this machine by packaging/sos/ibprov.py, and
# `ibprov check --log` reads the archive, cleaned or not. `sos collect` does so of two nodes, this
# machine and this machine by ssh. As root.
# sos.sh PROGRAM
set -eu
cd "$(dirname "$0")/.."
program=$1
# sos looks for programs in directories of the system alone.
if [ "${2-}" != mounted ]; then
	sh tests/vm/image/need.sh iproute2 openssh-client openssh-server sosreport
	exec unshare --mount --net sh tests/sos.sh "$program" mounted
fi
work=$(mktemp -d "${TMPDIR:-/var/tmp}/sos-XXXXXX")
trap 'kill "$(cat "$work/sshd.pid")" 2>/dev/null || :; umount /usr/local/sbin 2>/dev/null || :; rm -rf "$work"' EXIT
# sos looks for plugins where it is itself.
cp -R /usr/lib/python3/dist-packages/sos "$work/sos"
cp packaging/sos/ibprov.py "$work/sos/report/plugins/"
install -D "$program" "$work/bin/ibprov"
mount --bind "$work/bin" /usr/local/sbin
export PYTHONPATH="$work"
fail() {
	echo "test $1 ... FAILED"
	cat "$work/said"
	exit 1
}
run() { # NAME COMMAND...
	name=$1
	shift
	"$@" >"$work/said" 2>&1 || fail "$name"
	echo "test $name ... ok"
}
# The verdict of a machine without InfiniBand, by its archive.
judge() { # NAME ARCHIVE
	code=0
	ibprov check --log "$2" >"$work/said" 2>&1 || code=$?
	[ $code -le 1 ] && grep -q '^verdict: ' "$work/said" || fail "$1"
	echo "test $1 ... ok"
}
archive() {
	set -- "$work"/out/*.tar.*
	for file; do
		case $file in *.md5 | *.sha256 | *obfuscated*) ;; *) echo "$file" && return ;; esac
	done
}

mkdir "$work/out"
run a_report_is_made /usr/bin/python3 /usr/bin/sos report --batch --tmp-dir "$work/out" -o ibprov,kernel
tar tf "$(archive)" >"$work/said"
for file in ibprov_status_-v ibprov_status_--format_json ibprov_plan ibprov_check; do
	grep -q "sos_commands/ibprov/$file\$" "$work/said" || fail "the_report_has_$file"
done
judge a_report_is_read "$(archive)"
mkdir "$work/clean"
run a_report_is_cleaned /usr/bin/python3 /usr/bin/sos clean --batch --tmp-dir "$work/clean" "$(archive)"
judge a_cleaned_report_is_read "$(ls "$work"/clean/*obfuscated*.tar* | grep -v -e md5 -e sha256 | head -1)"

# The other node: this machine, at an address of this network namespace alone.
ip link set lo up
mkdir -p /run/sshd "$work/home/.ssh" "$work/both" "$work/reports"
for key in key host; do ssh-keygen -q -t ed25519 -N '' -f "$work/$key"; done
/usr/sbin/sshd -f /dev/null -h "$work/host" -o ListenAddress=127.0.0.2 -o PidFile="$work/sshd.pid" -o UsePAM=no \
	-o StrictModes=no -o AuthorizedKeysFile="$work/key.pub" -o "Subsystem=sftp internal-sftp" -o "SetEnv=PYTHONPATH=$work"
export HOME="$work/home"
run reports_are_collected /usr/bin/python3 /usr/bin/sos collect --batch --cluster-type jbon --nodes 127.0.0.2 \
	-i "$work/key" --tmp-dir "$work/both" -o ibprov,kernel
tar -x --wildcards -f "$(ls "$work"/both/sos-collector-*.tar.?z)" -C "$work/reports" \
	--strip-components=1 '*/sosreport-*.tar.xz'
ls "$work/reports" >"$work/said"
[ "$(wc -l <"$work/said")" = 2 ] || fail reports_of_both_nodes
for report in "$work"/reports/*; do judge a_collected_report_is_read "$report"; done
echo "test result: ok. 7 passed; 0 failed"
