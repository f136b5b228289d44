# After a removal nothing names ibprov's units, so that openibd's name is free; what is
# installed again is enabled as it was (dpkg keeps what was set until it is purged).
install || fail "not installed"
on /bin/systemctl enable ibprov-wait-online.service
mkdir -p "$host/etc/ibprov"
printf '[metrics]\nfile = "/var/lib/ibprov.prom"\n' >"$host/etc/ibprov/ibprov.toml"
on /usr/sbin/ibprov metrics --output /var/lib/ibprov.prom || :
[ -s "$host/var/lib/ibprov.prom" ] || fail "no metrics were written"
mkdir -p "$host/run/udev/rules.d"
for rules in 61-ibprov-rdma 91-ibprov-rxe 61-ibprov-names; do : >"$host/run/udev/rules.d/$rules.rules"; done
remove || fail "not removed"
# Names that udev itself gives stay as they are until the next boot.
[ "$(ls "$host/run/udev/rules.d")" = 61-ibprov-names.rules ] || fail "rules that run the program are left"
[ ! -e "$host/var/lib/ibprov.prom" ] || fail "metrics are left"
left=$(find "$host/etc/systemd" -name "*ibprov*" -o -name openibd.service)
[ -z "$left" ] || fail "left: $left"
vendor
on /bin/systemctl disable openibd.service
install || fail "not installed again"
is enabled ibprov.service
[ "$kind" = rpm ] || is enabled ibprov-wait-online.service
