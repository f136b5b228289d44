#!/bin/sh
# `ibprov health` as the programs see it that it is for: Debian's slurmd, whose HealthCheckProgram
# is the example's script, and the program by which Nagios' plugins are wrapped. As root.
# health.sh PROGRAM
set -eu
program=$1
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/var/tmp}/health-XXXXXX")
pids=
# shellcheck disable=SC2086 # a list
trap 'kill $pids 2>/dev/null || :; wait; rm -rf "$work"' EXIT
failed=0 passed=0
judge() { # NAME COMMAND...
	name=$1
	shift
	if "$@" >"$work/said" 2>&1; then
		passed=$((passed + 1))
		echo "test $name ... ok"
	else
		failed=$((failed + 1))
		echo "test $name ... FAILED"
		sed 's/^/    /' "$work/said" "$work"/*.log 2>/dev/null
	fi
}

# A node of two ports, the second of which is as `set_port` says.
cp -R tests/tree/node "$work/node"
rm -rf "$work/node/etc/ibprov"
port=$work/node/sys/bus/pci/devices/0000:5e:00.0/infiniband/mlx5_1/ports/1
set_port() { # STATE LID
	echo "$1" >"$port/state"
	echo "$2" >"$port/lid"
}
printf '#!/bin/sh\nexec %s --root %s "$@"\n' "$program" "$work/node" >"$work/ibprov"
chmod 755 "$work/ibprov"

# negate gives another code for each that it knows.
nagios() { # CODE of health, CODE of negate
	code=0
	/usr/lib/nagios/plugins/negate --ok=UNKNOWN --warning=CRITICAL --critical=OK --unknown=WARNING \
		"$work/ibprov" health --for nagios || code=$?
	[ "$code" = "$1" ] || { echo "exit code $code, not $1" && return 1; }
}
set_port '4: ACTIVE' 0x9
judge "Nagios: ready is OK" nagios 3
set_port '2: INIT' 0xffff
judge "Nagios: ready with exceptions is WARNING" nagios 2
mkdir -p "$work/node/etc/ibprov"
echo 'boot = 1' >"$work/node/etc/ibprov/ibprov.toml"
judge "Nagios: a configuration whose error leaves ports out is CRITICAL" nagios 0
printf '[[port]]\nrdma = "mlx5_9"\n' >"$work/node/etc/ibprov/ibprov.toml"
judge "Nagios: an absent port is CRITICAL" nagios 0
rm "$work/node/etc/ibprov/ibprov.toml"

node=$(hostname -s)
# Slurm: one node, its controller and munge's key, on the loopback interface.
# slurmd hands its own environment on to no HealthCheckProgram.
sed "s,/usr/sbin/ibprov,$work/ibprov,; 1a export SLURM_CONF=$work/slurm.conf" \
	docs/examples/health/slurm-health-check >"$work/check"
chmod 755 "$work/check"
cat >"$work/slurm.conf" <<END
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
HealthCheckProgram=$work/check
HealthCheckInterval=1
NodeName=$node NodeAddr=127.0.0.1 CPUs=1
PartitionName=all Nodes=$node Default=YES
END
mkdir -p "$work/state" "$work/spool"
chmod 755 "$work"
dd if=/dev/urandom of="$work/munge.key" bs=128 count=1 2>/dev/null
chmod 400 "$work/munge.key"
export SLURM_CONF="$work/slurm.conf"
munged --foreground --force --key-file="$work/munge.key" --socket="$work/munge.socket" \
	--pid-file="$work/munge.pid" --log-file="$work/munged.log" --seed-file="$work/munge.seed" &
pids=$!
until [ -S "$work/munge.socket" ]; do sleep 0.1; done
slurmctld -D >"$work/slurmctld.log" 2>&1 &
pids="$pids $!"
slurmd -D >"$work/slurmd.log" 2>&1 &
pids="$pids $!"
# shows TEXT...: `scontrol show node` has all of them, within a minute.
shows() {
	for _ in $(seq 120); do
		told=$(scontrol --oneliner show node "$node" 2>&1) && all=yes || all=
		for text; do
			case $told in *"$text"*) ;; *) all= ;; esac
		done
		[ -z "$all" ] || return 0
		sleep 0.5
	done
	echo "$told"
	return 1
}
judge "Slurm: a node with a port that is not active is drained, and told why" \
	shows +DRAIN "Reason=ibprov: ready with exceptions: port-not-active mlx5_1/1"
set_port '4: ACTIVE' 0x9
judge "Slurm: it is resumed when the port is active" shows "State=IDLE "
judge "Slurm: its reason is gone" sh -c "! scontrol --oneliner show node $node | grep Reason="
set_port '2: INIT' 0xffff
judge "Slurm: it is drained again" shows State=IDLE+DRAIN
scontrol update nodename="$node" state=resume
scontrol update nodename="$node" state=drain reason="by the administrator"
set_port '4: ACTIVE' 0x9
judge "Slurm: what the administrator has drained stays drained" \
	shows State=IDLE+DRAIN "Reason=by the administrator"
[ "$failed" = 0 ] && result=ok || result=FAILED
echo "test result: $result. $passed passed; $failed failed"
[ "$failed" = 0 ]
