# A node that was migrated is brought back before the package goes, or the package stays.
install || fail "not installed"
mkdir -p "$host/var/lib/ibprov"
echo '{}' >"$host/var/lib/ibprov/migration.json"
# Stands for the verb: without the file that this scene makes, the way back fails.
mv "$host/usr/sbin/ibprov" "$host/usr/sbin/ibprov.own"
cat >"$host/usr/sbin/ibprov" <<'END'
#!/bin/sh
echo "$*" >>/packages/verbs
[ -e /packages/works ] && [ "$*" = "migrate --back --apply" ] && rm /var/lib/ibprov/migration.json
END
chmod 755 "$host/usr/sbin/ibprov"
! remove || fail "removed"
says "Run: ibprov migrate --back --apply"
is_installed
is enabled ibprov.service
touch "$host/packages/works"
remove || fail "not removed"
! is_installed
grep -x 'migrate --back --apply' "$host/packages/verbs"
