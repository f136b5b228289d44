# A host with both builders of an initramfs, to chroot into; sourced where mounts of its own
# are gone at the end. Wants $work, $root (a root file system with the builders), $tree (what
# lies over it) and $release; gives $host and on().
mkdir "$work/host"
mount -t tmpfs none "$work/host"
mkdir "$work/host/upper" "$work/host/work" "$work/host/root"
mount -t overlay -o "lowerdir=$tree:$root,upperdir=$work/host/upper,workdir=$work/host/work" none "$work/host/root"
host=$work/host/root
mount -t proc none "$host/proc"
mount --bind /dev "$host/dev"
kernel=$(ls -d "${XDG_CACHE_HOME:-$HOME/.cache}"/ibprov/kernel-*/modules/lib/modules/"$release" 2>/dev/null | head -n 1)
[ -n "$kernel" ] || kernel=$(find "${XDG_CACHE_HOME:-$HOME/.cache}"/ibprov/kernel-* -type d -path "*modules/$release" | head -n 1)
mkdir -p "$host/usr/lib/modules/$release" "$host/boot" "$host/etc/ibprov" "$host/etc/modprobe.d"
cp -a "$kernel/." "$host/usr/lib/modules/$release/"
depmod -b "$host" "$release"
# What mkinitramfs asks of the kernel's package.
printf 'CONFIG_RD_%s=y\n' GZIP XZ ZSTD >"$host/boot/config-$release"
on() { chroot "$host" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
