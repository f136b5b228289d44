# Children of P_Keys, to be sourced: on each port as many as its table has places for. How many
# each stage has stands on the kernel's command line, bed.children=NUMBER,...
stages=
for word in $(cat /proc/cmdline); do
	case $word in bed.children=*) stages=$(echo "${word#*=}" | tr , ' ') ;; esac
done
# Each port's table has 128 places: the default P_Key, and those of children.
ports=$(ls -d /sys/class/net/ib? | wc -l)
each=126
parent() { echo "ib$((($1 - 1) / each))"; }
key() { printf '%04x' $((0x8001 + ($1 - 1) % each)); }
child() { printf '%s' "$(parent "$1").$(key "$1")"; }
network() { # NAME N
	printf '[Match]\nName=%s\n\n[Network]\nAddress=10.%d.%d.1/24\nLinkLocalAddressing=no\n' "$1" $((2 + $2 / 250)) $(($2 % 250)) >"/run/systemd/network/50-$1.network"
}
# children COUNT: what ip(8) has to do for a stage with so many, of which there are $n.
children() {
	one=$n
	while [ $one -lt "$1" ]; do
		one=$((one + 1))
		echo "link add link $(parent $one) name $(child $one) type ipoib pkey 0x$(key $one)"
	done
}
# create COUNT: makes them, 32 at once. Of 128 at once udev's workers alone take all of two
# emulated processors for 5 to 8 s, and any unit starts as much later, whoever sets them up.
create() {
	while [ $n -lt "$1" ]; do
		part=$((n + 32))
		[ $part -le "$1" ] || part=$1
		children $part >/run/batch
		ip -batch /run/batch || echo "$part: not all are created"
		n=$part
		udevadm settle --timeout=120
	done
}
# networks: a file of systemd-networkd for each interface there will be.
networks() {
	mkdir -p /run/systemd/network
	one=0
	while [ $one -lt "$ports" ]; do
		network ib$one $((900 + one))
		one=$((one + 1))
	done
	one=1
	while [ $one -le $((${stages##* } + 2)) ]; do
		network "$(child $one)" $one
		one=$((one + 1))
	done
}
