# A node that ibprov itself has migrated has its vendor's agents again when the package is gone.
mkdir -p "$host/usr/lib/bed"
cp -a "$project/tests/vm/scenarios/migration/root/usr/lib/bed/." "$host/usr/lib/bed/"
on env SYSTEMD_OFFLINE=1 sh /usr/lib/bed/vendor/install
links() { (cd "$host/etc" && find systemd udev infiniband -printf '%p %l\n' | LC_ALL=C sort); }
links >"$host/packages/before"
install || fail "not installed"
is disabled ibprov.service
on ibprov migrate --apply >"$said" 2>&1 || fail "not migrated"
is enabled ibprov.service
[ -e "$host/var/lib/ibprov/migration.json" ] || fail "no record"
upgrade || fail "not upgraded"
is enabled ibprov.service
remove || fail "not removed"
! is_installed
is enabled openibd.service
links | diff "$host/packages/before" - || fail "not as before"
[ ! -e "$host/var/lib/ibprov/migration.json" ] || fail "the record is left"
