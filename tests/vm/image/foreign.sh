# A root as root.sh makes it, with packages of another architecture among them, which are
# named as apt names them: NAME:ARCH. foreign.sh OUT FINAL SUITE PACKAGE...
architectures=$(dpkg --print-architecture)$(printf '%s\n' "$@" | sed -n 's/.*:/,/p' | sort -u | tr -d '\n')
mmdebstrap() { command mmdebstrap --architectures="$architectures" "$@"; }
. "$(dirname "$0")/root.sh"
