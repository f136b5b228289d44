set -u
. /usr/lib/bed/vf.sh
pf=0000:01:00.0
rule() { echo "$1" >/sys/kernel/debug/ibsim/mlx4_core/set; }
# aliases NAME: of each VF the ports that it has, with what the PF asks for and is granted; then
# what its own ports show.
aliases() {
	for n in 0 1 2 3; do
		vf=$(vf "$pf" $n)
		for port in "$pci/$pf"/infiniband/*/iov/"$vf"/ports/*; do
			iov=${port%/"$vf"/*}
			first index "$port/gid_idx/0"
			first asked "$iov/ports/${port##*/}/admin_guids/$index"
			first granted "$iov/ports/${port##*/}/gids/$index"
			echo "$n has ${port##*/} $asked ${granted#*:*:*:*:}"
		done
		for port in "$pci/$vf"/infiniband/*/ports/*; do
			[ ! -e "$port" ] || { first gid "$port/gids/0" && echo "$n shows ${port##*/} ${gid#*:*:*:*:}"; }
		done
	done >"$OUT/$1.aliases"
}
# other NAME GUID [MORE]: the plan with another part of the GUIDs, and more.
other() {
	printf '[boot]\nadapter-timeout = "5s"\n\n' >"/run/$1.toml"
	sed "s/02:00:00:70/02:00:00:$2/" /etc/ibprov/ibprov.toml >>"/run/$1.toml"
	printf '%b' "${3:-}" >>"/run/$1.toml"
	apply "$1" --config "/run/$1.toml"
	aliases "$1"
}
udevadm settle
phase fresh
cp /run/ibprov/boot.json "$OUT/booted.json"
aliases fresh
ibprov status --format json >"$OUT/status.json"
counters >"$OUT/counters.before"
apply again
counters >"$OUT/counters.after"

phase "port 2 without a cable, and with one"
rule "$pf/link2=down"
# Nobody grants the GUID of VF 1, which has port 2 alone; VFs with a driver of the host would wait
# for their turn behind it.
other dark 71 '\n[[pf.vf]]\nindex = 1\ndriver = "none"\n'
rule "$pf/link2=active"
other lit 71

phase "the second port of a VF is in use"
for netdev in "$pci/$pf"/virtfn2/net/*; do
	first port "$netdev/dev_port"
	[ "$port" = 0 ] || used=${netdev##*/}
done
ip link set "$used" up
ip addr add 10.4.0.1/24 dev "$used"
other used 72
phase end
