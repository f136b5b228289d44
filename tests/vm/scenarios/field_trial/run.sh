# One step of the trial in each boot.
. /usr/lib/bed/iface.sh
bed=/usr/lib/bed
keep=/var/lib/bed
trial=/var/lib/ibprov-field-trial
mkdir -p "$keep"
step=$(cat "$keep/step" 2>/dev/null || echo 0)
# as NAME COMMAND...: a line with its exit code, and a file with what it said.
as() {
	name=$1
	shift
	"$@" >"$keep/$name" 2>&1
	echo "$name: $?"
}
# A process with the name that the kernel has of it.
called() {
	cp /bin/sleep "/root/$1"
	"/root/$1" 600 &
	users="$users $!"
}
connected() { ss -Htn state established | grep -q 10.0.0.1:2222; }
has_address() { ip -o -4 addr show dev ib0 | grep -q 10.0.0.1; } 2>/dev/null
begin() { CONSOLE=/run/console sh /root/field-trial.sh $bed/ibprov_1.deb; }
# What somebody types who looks at the second console.
answers() {
	echo yes
	until grep -q . /run/console 2>/dev/null; do sleep 0.2; done
	sed -n 's/.*number is //p' /run/console
}
next() { yes yes | sh $trial/field-trial.sh; }
{
	case $step in
	0)
		as vendor-install $bed/vendor/install
		;;
	1)
		within 60 has_address
		dpkg-deb --fsys-tarfile $bed/ibprov_1.deb | tar -xO ./usr/share/doc/ibprov/field-trial.sh >/root/field-trial.sh
		as not-root setpriv --reuid 65534 --clear-groups sh -s x </root/field-trial.sh
		users=
		for name in opensm qemu-system-x86 slurmstepd slurmd kubelet; do called $name; done
		systemd-run --quiet --socket-property=ListenStream=10.0.0.1:2222 --unit=bed-tcp sleep infinity
		# It is connected although nobody accepts it.
		bash -c 'exec 4<>/dev/tcp/10.0.0.1/2222 && exec sleep 600' &
		users="$users $!"
		within 60 connected
		yes yes | as in-use begin
		systemctl stop bed-tcp.socket bed-tcp.service
		# shellcheck disable=SC2086 # their numbers
		kill $users
		yes yes | as wrong-number begin
		rm -f /run/console
		answers | as begins begin
		as too-early next
		;;
	2)
		as installs next
		;;
	3)
		systemctl stop site.service
		as first next
		;;
	4)
		as second next
		;;
	5)
		as undone next
		# What the undo left would be seen.
		echo undone >$trial/step
		mkdir /etc/left
		systemctl --quiet disable site.service
		as left next
		rm -r /etc/left
		;;
	esac
} >>"$keep/stdout"
if [ "$step" = 5 ]; then
	cp "$keep"/* "$OUT/"
	cat "$keep/stdout"
	exit 0
fi
echo $((step + 1)) >"$keep/step"
systemctl reboot
exec sleep infinity
