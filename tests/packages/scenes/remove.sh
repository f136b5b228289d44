# After a removal nothing names ibprov's units, so that openibd's name is free; what is
# installed again is enabled as it was (dpkg keeps what was set until it is purged).
install || fail "not installed"
on /bin/systemctl enable ibprov-wait-online.service
remove || fail "not removed"
left=$(find "$host/etc/systemd" -name "*ibprov*" -o -name openibd.service)
[ -z "$left" ] || fail "left: $left"
vendor
on /bin/systemctl disable openibd.service
install || fail "not installed again"
is enabled ibprov.service
[ "$kind" = rpm ] || is enabled ibprov-wait-online.service
