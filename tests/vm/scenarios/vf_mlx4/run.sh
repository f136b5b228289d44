set -u
. /usr/lib/bed/vf.sh
pf=0000:01:00.0
rule() { echo "$1" >/sys/kernel/debug/ibsim/mlx4_core/set; }
gids() { cat "$pci/$pf"/infiniband/*/iov/ports/1/gids/[1-4]; }
udevadm settle
phase fresh
facts "$pf" >"$OUT/fresh.facts"
gids >"$OUT/fresh.gids"
counters >"$OUT/counters.before"
apply again
counters >"$OUT/counters.after"

phase "another GUID; none from the subnet manager"
sed 's/02:00:00:70/02:00:00:71/' /etc/ibprov/ibprov.toml >/run/other.toml
apply other --config /run/other.toml
facts "$pf" >"$OUT/other.facts"
gids >"$OUT/other.gids"
rule "pf/guid_write=drop"
printf '[boot]\nadapter-timeout = "5s"\n\n' >/run/refused.toml
sed 's/02:00:00:70/02:00:00:72/' /etc/ibprov/ibprov.toml >>/run/refused.toml
apply refused --config /run/refused.toml
rule "pf/guid_write=ok"

phase "a number, a driver that it cannot have"
sed 's/vfs = 4/vfs = 2/; /pf.vf/Q' /etc/ibprov/ibprov.toml >/run/number.toml
apply number --config /run/number.toml
sed 's/02:00:00:70/02:00:00:71/; /pf.vf/Q' /etc/ibprov/ibprov.toml >/run/driver.toml
apply driver --config /run/driver.toml
phase end
