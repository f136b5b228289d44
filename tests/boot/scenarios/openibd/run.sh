findings() { ibprov status --format json >"$OUT/$1.json"; systemctl show -p Id,FragmentPath openibd.service >"$OUT/$1.unit"; }
findings before
touch /run/openibd.calls
cp /run/openibd.calls "$OUT/calls"
# What `ibprov status` says to do is done to the letter, where it is a command.
ibprov status | sed -n 's/^ *run: \(systemctl\|rm\|ibprov migrate --apply\)/\1/p' | grep -v '(' >"$OUT/advice"
sh -ex "$OUT/advice"
findings after
systemctl show -p Requires,After storage.service | tr '= ' '\n\n' | grep '^ibprov\|^openibd' >"$OUT/storage"
