# A host to install packages on: a root that is gone when this ends. Runs the scene that is
# its argument, which has these functions. Sourced scenes stop at the first failure.
host=$(mktemp -d)
mount -t tmpfs none "$host"
mkdir "$host/upper" "$host/work" "$host/root"
mount -t overlay -o "lowerdir=$root,upperdir=$host/upper,workdir=$host/work" none "$host/root"
host=$host/root
mount -t proc none "$host/proc"
mount --bind /dev "$host/dev"
# Each call of systemctl is written down.
mkdir -p "$host/packages" "$host/usr/local/bin"
cat >"$host/usr/local/bin/systemctl" <<'END'
#!/bin/sh
echo "$*" >>/packages/calls
exec /bin/systemctl "$@"
END
chmod 755 "$host/usr/local/bin/systemctl"
cp "$deb" "$host/packages/ibprov.deb"
cp "$work/lower.deb" "$host/packages/lower.deb"

on() { chroot "$host" env -i PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
# Scriptlets get this path: the wrapper above comes first.
rpm_on() { rpm --root "$host" --define '_install_script_path /usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin' "$@"; }
# What dpkg and rpm say is in $said.
said=$host/packages/said
install() { case $kind in deb) on dpkg -i /packages/ibprov.deb ;; rpm) rpm_on -i --nodeps "$rpm" ;; esac >"$said" 2>&1; }
lower() { case $kind in deb) on dpkg -i /packages/lower.deb ;; rpm) rpm_on -U --oldpackage --nodeps "$work/lower.rpm" ;; esac >"$said" 2>&1; }
upgrade() { case $kind in deb) on dpkg -i /packages/ibprov.deb ;; rpm) rpm_on -U --nodeps --replacepkgs --force "$rpm" ;; esac >"$said" 2>&1; }
remove() { case $kind in deb) on dpkg -r ibprov ;; rpm) rpm_on -e --nodeps ibprov ;; esac >"$said" 2>&1; }
purge() { case $kind in deb) on dpkg -P ibprov ;; rpm) rpm_on -e --nodeps ibprov ;; esac >"$said" 2>&1; }
# version PATTERN: the version that is installed
version() { case $kind in deb) on dpkg-query -W -f '${Version}\n' ibprov ;; rpm) rpm_on -q --qf '%{VERSION}\n' ibprov ;; esac | grep -qx -- "$1.*" || fail "not version $1"; }
is_installed() { case $kind in deb) on dpkg-query -W -f '${db:Status-Status}\n' ibprov | grep -qx installed ;; rpm) rpm_on -q ibprov ;; esac; }
# is STATE UNIT
is() {
	state=$(on /bin/systemctl is-enabled "$2" 2>/dev/null || :)
	[ "$state" = "$1" ] || { echo "$2 is ${state:-unknown}, not $1" && cat "$said" && return 1; }
}
says() { grep -F -- "$1" "$said" || { echo "does not say: $1" && cat "$said" && return 1; }; }
vendor() { # the vendor's unit, enabled
	cp "$project/tests/boot/scenarios/openibd/root/usr/lib/systemd/system/openibd.service" "$host/usr/lib/systemd/system/"
	on /bin/systemctl enable openibd.service
}
nothing_started() { ! grep -wE 'start|stop|restart|try-restart|reload-or-restart|isolate|--now' "$host/packages/calls"; }
fail() { echo "$*" && cat "$said" && return 1; }

project=$PWD
. "$PWD/$1"
nothing_started
