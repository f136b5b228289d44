#!/bin/bash
# What rdma-core's own module for dracut brings (packages for Fedora and its kin have it, in
# every image until 2025): the rules, the lists of modules and the unit that loads them.
check() {
	return 0
}

installkernel() {
	hostonly='' instmods -o mlx5_ib mlx4_ib ib_ipoib ib_umad ib_uverbs rdma_ucm ib_srp ib_iser \
		xprtrdma svcrdma
}

install() {
	inst_multiple /etc/rdma/modules/*.conf
	inst_rules 60-rdma-persistent-naming.rules 75-rdma-description.rules \
		90-rdma-hw-modules.rules 90-rdma-ulp-modules.rules 90-rdma-umad.rules
	inst_multiple -o /usr/lib/systemd/system/rdma-hw.target \
		/usr/lib/systemd/system/rdma-load-modules@.service \
		/lib/systemd/system/rdma-hw.target /lib/systemd/system/rdma-load-modules@.service
}
