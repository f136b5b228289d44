# A downgrade keeps what the administrator has enabled and disabled, as an upgrade does.
install || fail "not installed"
on /bin/systemctl disable ibprov.service
on /bin/systemctl enable ibprov-guests.service
lower || fail "not downgraded"
version 0.0.9
is disabled ibprov.service
is enabled ibprov-guests.service
on /bin/systemctl enable ibprov.service
upgrade || fail "not upgraded"
lower || fail "not downgraded again"
is enabled ibprov.service
is enabled ibprov-openibd.service
