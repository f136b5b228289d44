# Beside an enabled openibd nothing is enabled, and two lines say how to migrate.
vendor
install || fail "not installed"
is disabled ibprov.service
is enabled openibd.service
[ "$(readlink "$host/etc/systemd/system/sysinit.target.wants/openibd.service" | sed 's,.*/system/,,')" = openibd.service ]
says "openibd.service is enabled on this host"
says "to migrate: "
[ "$(grep -c '^ibprov: ' "$said")" = 2 ] || fail "not two lines"
# An upgrade says nothing of it again, and enables nothing.
upgrade || fail "not upgraded"
is disabled ibprov.service
! grep '^ibprov: ' "$said"
