# On a host without another agent the first installation enables ibprov, and nothing else.
install || fail "not installed"
is enabled ibprov.service
is enabled ibprov-openibd.service
is disabled ibprov-guests.service
is disabled ibprov-wait-online.service
[ "$(readlink "$host/etc/systemd/system/openibd.service" | sed 's,.*/,,')" = ibprov-openibd.service ]
on ibprov --version
on journalctl --dump-catalog fa880a9215c64c31a44865a1837ca75f | grep -F 'An InfiniBand port is not ready'
