#!/bin/bash
# dracut's module for an initramfs that needs an InfiniBand port, as for a root file system
# over IPoIB, iSER or SRP. It brings the modules, their options and the names of interfaces;
# ibprov itself runs when the root file system is there. Included only where
# dracut.conf(5) asks for it: add_dracutmodules+=" ibprov "

check() {
	# A crash kernel has no memory for it: kdump's images go without InfiniBand.
	[ -z "${IN_KDUMP:-}" ] || return 1
	require_binaries ibprov || return 1
	return 255
}

depends() {
	echo udev-rules kernel-modules
}

installkernel() {
	# Those of which a kernel has none are left out.
	hostonly='' instmods -o mlx5_core mlx5_ib mlx4_core mlx4_ib
	hostonly='' instmods ib_ipoib
}

install() {
	# Not only with hostonly, as dracut does: an option may change a port's type.
	inst_multiple -o "/etc/modprobe.d/*.conf"
	# RDMA devices have the names of the running system, where rdma-core gives them: its
	# rule with the program that it runs.
	inst_rules 60-rdma-persistent-naming.rules
	inst_multiple -o /usr/lib/udev/rdma_rename /lib/udev/rdma_rename
	# Nothing loads it by itself.
	mkdir -p "$initdir/etc/modules-load.d" "$initdir/etc/udev/rules.d"
	echo ib_ipoib >"$initdir/etc/modules-load.d/ibprov.conf"
	# Without the names that have an error; the image is made all the same.
	ibprov config udev-rules >"$initdir/etc/udev/rules.d/61-ibprov-names.rules" ||
		dwarn "ibprov: the image may lack names of interfaces: run ibprov config check"
}
