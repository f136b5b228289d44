# What differs between distributions, in one place. Sourced by the others.
# Debian 12 and 13 are what this was run on. The Ubuntu half is written from its package
# lists; tried was only a kernel packed as Ubuntu 24.04 packs it.
. /etc/os-release
suite=$VERSION_CODENAME
arch=$(dpkg --print-architecture)
case $ID in
debian)
	kernel_package=linux-image-$arch headers_package=linux-headers-$arch
	archive_origin=Debian archive_components=main
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	;;
ubuntu)
	kernel_package=linux-image-generic headers_package=linux-headers-generic
	archive_origin=Ubuntu archive_components='main universe'
	keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
	;;
*)
	echo "image: $ID is neither Debian nor Ubuntu: its kernel package names are not known here" >&2
	exit 1
	;;
esac
