# An upgrade keeps what the administrator has enabled and disabled.
lower || fail "not installed"
version 0.0.9
is enabled ibprov.service
on /bin/systemctl disable ibprov.service
on /bin/systemctl enable ibprov-guests.service
upgrade || fail "not upgraded"
version "$(dpkg-deb -f "$deb" Version | sed 's/-.*//')"
is disabled ibprov.service
is enabled ibprov-guests.service
on /bin/systemctl enable ibprov.service
upgrade || fail "not upgraded again"
is enabled ibprov.service
is enabled ibprov-openibd.service
