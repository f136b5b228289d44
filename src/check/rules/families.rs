//! What the drivers of the RDMA stack and the programs on it write when something is
//! wrong, by families: each row has the words of the message, the source file in which
//! it was read, and what it stands for.

use super::super::evidence::Event;
use crate::report::finding::Code;

/// A family of messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    /// Words that all stand in the message; by the first it is looked for.
    pub words: &'static [&'static str],
    /// The file that prints it: of Linux, or of the named project.
    pub source: &'static str,
    /// What it stands for.
    pub meaning: Meaning,
}

/// What a family stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// One of these diagnoses; where none is made, nothing explains the line.
    Sign(&'static [Code]),
    /// Nothing, and why.
    Harmless(&'static str),
    /// A fault for which there is no diagnosis.
    Unexplained,
}

impl Family {
    /// True if it means nothing.
    pub(super) const fn is_harmless(&self) -> bool {
        matches!(self.meaning, Meaning::Harmless(_))
    }

    fn fits(&self, text: &str) -> bool {
        self.words.iter().all(|word| text.contains(word))
    }
}

/// The family of `event`.
pub(super) fn of(event: &Event) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.fits(&event.text))
}

/// The words by which the families are looked for.
pub(super) fn needles() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().filter_map(|family| family.words.first().copied())
}

use Meaning::{Harmless, Sign, Unexplained};

const fn row(words: &'static [&'static str], source: &'static str, meaning: Meaning) -> Family {
    Family { words, source, meaning }
}

/// Every family.
pub(super) const FAMILIES: &[Family] = &[
    row(
        &["Firmware over", "aborting"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["fw-init-timeout"]),
    ),
    row(
        &["Waiting for FW", "timeout abort"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Harmless("the firmware takes longer than usual; a failure has a line of its own"),
    ),
    row(
        &["Missing registers BAR"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["Couldn't get PCI resources"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["error requesting BARs"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["Failed mapping initialization segment"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["QUERY_HCA_CAP : type"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["handle_hca_cap", "failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["Failed to query ISSI"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["Query ISSI is not supported"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Harmless("an older firmware; the driver goes on with ISSI 0"),
    ),
    row(
        &["enable hca failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["init hca failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["set_hca_cap failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["set_hca_ctrl failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["query hca failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["query board id failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["failed to allocate boot pages"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["failed to allocate init pages"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["Failed allocating uar"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["Failed to alloc IRQs"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["Failed to create EQs"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["Failed to init flow steering"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["Failed to init eswitch"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["sw objs init failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["wait vital failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["mlx5_init_one failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["mlx5_load_one failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["mlx5_pci_init failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(&["tear_down_hca failed"], "drivers/net/ethernet/mellanox/mlx5/core/main.c", Unexplained),
    row(
        &["interface is down, NOP"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Harmless("the function was unloaded already"),
    ),
    row(
        &["interface is up, NOP"],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Harmless("the function was loaded already"),
    ),
    row(
        &["Fatal error", " detected"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["health compromised"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["health recovery failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["health recovery flow aborted"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["NIC IFC still"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["PCI slot is unavailable"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["Health issue observed"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["Cold reset is required"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["handling bad device here"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["starting health recovery flow"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["Driver is in error state"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["assert_exit_ptr"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["assert_var["],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["assert_callra"],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["timeout. Will cause a leak"],
        "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        Sign(&["fw-init-timeout", "firmware-fatal", "driver-regression", "vf-probe-failed"]),
    ),
    row(
        &["recovered after timeout"],
        "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        Harmless("the completion had come and its interrupt was late; the driver took it"),
    ),
    row(
        &["No done completion"],
        "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        Sign(&["fw-init-timeout", "firmware-fatal", "driver-regression", "vf-probe-failed"]),
    ),
    row(
        &["All CMD slots are stalled"],
        "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        Unexplained,
    ),
    row(
        &["timed out while waiting for a slot"],
        "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        Unexplained,
    ),
    row(
        &["Driver cmdif rev", "differs"],
        "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        Sign(&["firmware-too-old"]),
    ),
    row(
        &["op_mod(", "failed, status"],
        "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        Sign(&["driver-regression", "vf-probe-failed", "not-as-expected"]),
    ),
    row(
        &["failed to enable eswitch SRIOV"],
        "drivers/net/ethernet/mellanox/mlx5/core/sriov.c",
        Sign(&["vf-probe-failed", "sriov-mmio", "sriov-not-enabled-fw", "not-as-expected"]),
    ),
    row(
        &["failed to enable VF"],
        "drivers/net/ethernet/mellanox/mlx5/core/sriov.c",
        Sign(&["vf-probe-failed", "sriov-mmio", "sriov-not-enabled-fw", "not-as-expected"]),
    ),
    row(
        &["pci_enable_sriov failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/sriov.c",
        Sign(&["vf-probe-failed", "sriov-mmio", "sriov-not-enabled-fw", "not-as-expected"]),
    ),
    row(
        &["mlx5_device_enable_sriov failed"],
        "drivers/net/ethernet/mellanox/mlx5/core/sriov.c",
        Sign(&["vf-probe-failed", "sriov-mmio", "sriov-not-enabled-fw", "not-as-expected"]),
    ),
    row(
        &["unable to restore VF"],
        "drivers/net/ethernet/mellanox/mlx5/core/sriov.c",
        Sign(&["vf-probe-failed", "sriov-mmio", "sriov-not-enabled-fw", "not-as-expected"]),
    ),
    row(
        &["failed to restore VF"],
        "drivers/net/ethernet/mellanox/mlx5/core/sriov.c",
        Sign(&["vf-probe-failed", "sriov-mmio", "sriov-not-enabled-fw", "not-as-expected"]),
    ),
    row(
        &["timeout reclaiming VFs pages"],
        "drivers/net/ethernet/mellanox/mlx5/core/sriov.c",
        Unexplained,
    ),
    row(&["failed to disable VF"], "drivers/net/ethernet/mellanox/mlx5/core/sriov.c", Unexplained),
    row(
        &["Failed to request irq"],
        "drivers/net/ethernet/mellanox/mlx5/core/pci_irq.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["Failed to create async EQs"],
        "drivers/net/ethernet/mellanox/mlx5/core/eq.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["maximum number of vectors is allocated"],
        "drivers/net/ethernet/mellanox/mlx5/core/eq.c",
        Unexplained,
    ),
    row(&["CQ error on CQN"], "drivers/net/ethernet/mellanox/mlx5/core/eq.c", Unexplained),
    row(&["Async event for bogus CQ"], "drivers/net/ethernet/mellanox/mlx5/core/eq.c", Unexplained),
    row(
        &["EQEs on cmd_eq"],
        "drivers/net/ethernet/mellanox/mlx5/core/eq.c",
        Harmless("events whose interrupt was late were taken by a poll"),
    ),
    row(
        &["High temperature on sensors"],
        "drivers/net/ethernet/mellanox/mlx5/core/events.c",
        Unexplained,
    ),
    row(
        &["PCI Sync FW Update Reset"],
        "drivers/net/ethernet/mellanox/mlx5/core/fw_reset.c",
        Sign(&["firmware-reset-pending", "firmware-fatal", "fw-init-timeout"]),
    ),
    row(
        &["Sync Reset now"],
        "drivers/net/ethernet/mellanox/mlx5/core/fw_reset.c",
        Sign(&["firmware-reset-pending", "firmware-fatal", "fw-init-timeout"]),
    ),
    row(
        &["Sync Reset Unload"],
        "drivers/net/ethernet/mellanox/mlx5/core/fw_reset.c",
        Sign(&["firmware-reset-pending", "firmware-fatal", "fw-init-timeout"]),
    ),
    row(
        &["FW sync reset timeout"],
        "drivers/net/ethernet/mellanox/mlx5/core/fw_reset.c",
        Sign(&["firmware-reset-pending", "firmware-fatal", "fw-init-timeout"]),
    ),
    row(
        &["Sync reset did not complete"],
        "drivers/net/ethernet/mellanox/mlx5/core/fw_reset.c",
        Sign(&["firmware-reset-pending", "firmware-fatal", "fw-init-timeout"]),
    ),
    row(
        &["waiting for sync reset action"],
        "drivers/net/ethernet/mellanox/mlx5/core/fw_reset.c",
        Sign(&["firmware-reset-pending", "firmware-fatal", "fw-init-timeout"]),
    ),
    row(
        &["Firmware is not responsive"],
        "drivers/net/ethernet/mellanox/mlx5/core/fw_reset.c",
        Sign(&["firmware-reset-pending", "firmware-fatal", "fw-init-timeout"]),
    ),
    row(
        &["PCI link not ready"],
        "drivers/net/ethernet/mellanox/mlx5/core/fw_reset.c",
        Sign(&["firmware-reset-pending", "firmware-fatal", "fw-init-timeout"]),
    ),
    row(
        &["failed reclaiming pages"],
        "drivers/net/ethernet/mellanox/mlx5/core/pagealloc.c",
        Unexplained,
    ),
    row(
        &["FW did not return all pages"],
        "drivers/net/ethernet/mellanox/mlx5/core/pagealloc.c",
        Unexplained,
    ),
    row(
        &["aborting while there are", "pending pages"],
        "drivers/net/ethernet/mellanox/mlx5/core/pagealloc.c",
        Unexplained,
    ),
    row(
        &["exceeding the limit", "pages to func"],
        "drivers/net/ethernet/mellanox/mlx5/core/pagealloc.c",
        Sign(&["vf-probe-failed", "sriov-mmio", "sriov-not-enabled-fw", "not-as-expected"]),
    ),
    row(
        &["PCIe width is lower"],
        "drivers/net/ethernet/mellanox/mlx5/core/uar.c",
        Sign(&["pcie-link-reduced"]),
    ),
    row(
        &["PCIe speed is slower"],
        "drivers/net/ethernet/mellanox/mlx5/core/uar.c",
        Sign(&["pcie-link-reduced"]),
    ),
    row(
        &["failed to allocate device WQ"],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Sign(&["driver-regression", "module-load-interrupted", "module-load-order"]),
    ),
    row(
        &["failed to init HW resource"],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Sign(&["driver-regression", "module-load-interrupted", "module-load-order"]),
    ),
    row(
        &["ib_query_pkey port", "failed"],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Sign(&["driver-regression", "module-load-interrupted", "module-load-order"]),
    ),
    row(
        &["failed to initialize device:"],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Sign(&["driver-regression", "module-load-interrupted", "module-load-order"]),
    ),
    row(
        &["ipoib_intf_alloc failed"],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Sign(&["driver-regression", "module-load-interrupted", "module-load-order"]),
    ),
    row(
        &["couldn't register ipoib port"],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Sign(&["driver-regression", "module-load-interrupted", "module-load-order"]),
    ),
    row(
        &["transmit timeout: latency"],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Sign(&["driver-regression"]),
    ),
    row(
        &["Connected Mode not supported"],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Unexplained,
    ),
    row(
        &["mac address change is unsupported"],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Harmless("an IPoIB address is made of its GUID and cannot be set"),
    ),
    row(
        &["timing out;", "receives not completed"],
        "drivers/infiniband/ulp/ipoib/ipoib_ib.c",
        Unexplained,
    ),
    row(&["will stay in state:"], "drivers/infiniband/ulp/ipoib/ipoib_ib.c", Unexplained),
    row(
        &["failed to create receive CQ"],
        "drivers/infiniband/ulp/ipoib/ipoib_verbs.c",
        Sign(&["driver-regression", "module-load-interrupted", "module-load-order"]),
    ),
    row(
        &["failed to create QP"],
        "drivers/infiniband/ulp/ipoib/ipoib_verbs.c",
        Sign(&["driver-regression", "module-load-interrupted", "module-load-order"]),
    ),
    row(
        &["failed to modify QP"],
        "drivers/infiniband/ulp/ipoib/ipoib_verbs.c",
        Sign(&["driver-regression", "module-load-interrupted", "module-load-order"]),
    ),
    row(
        &["ib_sa_join_multicast failed"],
        "drivers/infiniband/ulp/ipoib/ipoib_multicast.c",
        Sign(&["no-subnet-manager"]),
    ),
    row(
        &["Couldn't register device with driver model"],
        "drivers/infiniband/core/device.c",
        Sign(&["driver-regression", "vf-probe-failed"]),
    ),
    row(
        &["Couldn't create per-port data"],
        "drivers/infiniband/core/device.c",
        Sign(&["driver-regression", "vf-probe-failed"]),
    ),
    row(
        &["Couldn't set up InfiniBand P_Key/GID cache"],
        "drivers/infiniband/core/device.c",
        Sign(&["driver-regression", "vf-probe-failed"]),
    ),
    row(&["Couldn't init IB MAD"], "drivers/infiniband/core/device.c", Unexplained),
    row(
        &["Couldn't rename device after namespace"],
        "drivers/infiniband/core/device.c",
        Unexplained,
    ),
    row(&["Couldn't create ib_mad"], "drivers/infiniband/core/mad.c", Unexplained),
    row(&["Fatal error (", "on MAD QP"], "drivers/infiniband/core/mad.c", Unexplained),
    row(&["state to INIT:", "Couldn't change QP"], "drivers/infiniband/core/mad.c", Unexplained),
    row(&["ib_post_send failed"], "drivers/infiniband/core/mad.c", Unexplained),
    row(&["Couldn't start port"], "drivers/infiniband/core/mad.c", Unexplained),
    row(
        &["already present!", "_mcg'"],
        "fs/debugfs/inode.c",
        Harmless("two netdevs had one name for a moment, and a file for debugging is missing"),
    ),
    row(
        &["already present!", "_path'"],
        "fs/debugfs/inode.c",
        Harmless("two netdevs had one name for a moment, and a file for debugging is missing"),
    ),
    row(
        &["did not enable P_Key index support"],
        "drivers/infiniband/core/user_mad.c",
        Harmless("an old program uses the first P_Key alone"),
    ),
    row(&["REJ reason"], "drivers/infiniband/ulp/srp/ib_srp.c", Unexplained),
    row(&["Path record query failed"], "drivers/infiniband/ulp/srp/ib_srp.c", Unexplained),
    row(&["giving up on stale connection"], "drivers/infiniband/ulp/srp/ib_srp.c", Unexplained),
    row(&["No route available from"], "drivers/infiniband/ulp/srp/ib_srp.c", Unexplained),
    row(
        &["may cause SRP login to fail"],
        "drivers/infiniband/ulp/srp/ib_srp.c",
        Harmless("the subnet timeout is longer than usual"),
    ),
    row(
        &["PARSE ERROR partition conf"],
        "opensm: opensm/osm_prtn_config.c",
        Sign(&["opensm-partitions-rejected"]),
    ),
    row(
        &["Partition configuration in error"],
        "opensm: opensm/osm_prtn.c",
        Sign(&["opensm-partitions-rejected"]),
    ),
    row(
        &["Error from osm_opensm_bind"],
        "opensm: opensm/main.c",
        Sign(&["opensm-misconfigured", "opensm-other-port"]),
    ),
    row(
        &["ERR 5424"],
        "opensm: libvendor/osm_vendor_ibumad.c",
        Sign(&["opensm-misconfigured", "opensm-other-port"]),
    ),
    row(&["ERR 5415"], "opensm: libvendor/osm_vendor_ibumad.c", Sign(&["opensm-misconfigured"])),
    row(
        &["unable to open any devices"],
        "rdma-core: ibacm/src/acm.c",
        Sign(&["rdma-service-failed", "module-not-loaded"]),
    ),
    row(
        &["unable to open MAD port"],
        "rdma-core: ibacm/src/acm.c",
        Sign(&["rdma-service-failed", "module-not-loaded"]),
    ),
    row(&["Querying SRP targets failed"], "rdma-core: srp_daemon/srp_daemon.c", Unexplained),
    row(&["Couldn't read SM LID"], "rdma-core: srp_daemon/srp_daemon.c", Unexplained),
    row(
        &["has not yet recovered from catas error"],
        "rdma-core: srp_daemon/srp_daemon.c",
        Sign(&["firmware-fatal"]),
    ),
    row(
        &["Failed to reset HCA"],
        "drivers/net/ethernet/mellanox/mlx4/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["Failed to init command interface"],
        "drivers/net/ethernet/mellanox/mlx4/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["Failed to init slave mfunc"],
        "drivers/net/ethernet/mellanox/mlx4/main.c",
        Sign(&["vf-probe-failed", "driver-regression"]),
    ),
    row(
        &["Failed to init fw, aborting"],
        "drivers/net/ethernet/mellanox/mlx4/main.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["continuing without SR-IOV"],
        "drivers/net/ethernet/mellanox/mlx4/main.c",
        Sign(&["sriov-not-enabled-fw", "sriov-mmio", "not-as-expected"]),
    ),
    row(
        &["Missing DCS, aborting"],
        "drivers/net/ethernet/mellanox/mlx4/main.c",
        Sign(&["pci-bar-unassigned", "driver-regression", "vf-probe-failed"]),
    ),
    row(
        &["communication channel command 0x", "timed out"],
        "drivers/net/ethernet/mellanox/mlx4/cmd.c",
        Sign(&["vf-probe-failed", "fw-init-timeout"]),
    ),
    row(
        &["failed: fw status = 0x"],
        "drivers/net/ethernet/mellanox/mlx4/cmd.c",
        Sign(&["driver-regression", "vf-probe-failed", "fw-init-timeout", "not-as-expected"]),
    ),
    row(
        &["for res init, err="],
        "drivers/infiniband/hw/mlx5/main.c",
        Sign(&["driver-regression", "vf-probe-failed"]),
    ),
    row(
        &["mr cache init failed"],
        "drivers/infiniband/hw/mlx5/main.c",
        Sign(&["driver-regression", "vf-probe-failed"]),
    ),
    row(&["query_hca_vport_context for port="], "drivers/infiniband/hw/mlx5/main.c", Unexplained),
    row(
        &["Failed to initialize RCFW"],
        "drivers/infiniband/hw/bnxt_re/main.c",
        Sign(&["driver-regression"]),
    ),
    row(
        &["Failed to allocate RCFW Channel"],
        "drivers/infiniband/hw/bnxt_re/main.c",
        Sign(&["driver-regression"]),
    ),
    row(
        &["Failed to register with IB:"],
        "drivers/infiniband/hw/bnxt_re/main.c",
        Sign(&["driver-regression"]),
    ),
    row(&["Failed to query hwrm qcaps"], "drivers/infiniband/hw/bnxt_re/main.c", Unexplained),
    row(
        &["auxiliary_driver_register() ret="],
        "drivers/infiniband/hw/irdma/main.c",
        Sign(&["driver-regression", "module-symbol-mismatch"]),
    ),
    row(&["too low for RDMA traffic"], "drivers/infiniband/hw/irdma/main.c", Unexplained),
    row(&["failed, SQ has more work"], "drivers/infiniband/hw/irdma/hw.c", Unexplained),
    row(
        &["Failed to allocate eager buffers"],
        "drivers/infiniband/hw/hfi1/init.c",
        Sign(&["driver-regression"]),
    ),
    row(
        &["Invalid Eager buffer size"],
        "drivers/infiniband/hw/hfi1/init.c",
        Sign(&["module-parameter"]),
    ),
    row(
        &["Invalid HdrQ Entry size"],
        "drivers/infiniband/hw/hfi1/init.c",
        Sign(&["module-parameter"]),
    ),
    row(
        &["Can't query IPoIB interface"],
        "lustre: lnet/klnds/o2iblnd/o2iblnd.c",
        Sign(&["ordering-missing", "mount-before-ipoib", "module-not-loaded", "port-not-ready"]),
    ),
    row(
        &["is not viable"],
        "qemu: hw/vfio/common.c",
        Sign(&["iommu-off", "vm-before-vf", "autostart-guest-on-vf"]),
    ),
    row(
        &["is not assignable"],
        "libvirt: src/hypervisor/virhostdev.c",
        Sign(&["iommu-off", "vm-before-vf", "autostart-guest-on-vf"]),
    ),
    row(
        &["Timed out waiting for device"],
        "systemd: src/core/device.c",
        Sign(&["udev-timeout", "port-not-ready", "module-not-loaded", "ordering-missing"]),
    ),
    row(
        &["still waiting for following initqueue hooks"],
        "dracut: modules.d/98dracut-systemd/dracut-initqueue.sh",
        Sign(&["initrd-without-fabric", "module-missing-in-initrd"]),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_can_be_found_and_names_rules_and_its_source() {
        assert!(FAMILIES.len() <= 150, "{}", FAMILIES.len());
        for (at, family) in FAMILIES.iter().enumerate() {
            let Family { words, source, meaning } = family;
            assert!(words.first().is_some_and(|word| word.len() >= 3), "{words:?}");
            assert!(words.iter().all(|word| word.len() <= 60), "{words:?}");
            assert!(source.contains('.') || source.contains('/'), "{words:?}: {source}");
            match meaning {
                Sign(codes) => {
                    assert!(!codes.is_empty(), "{words:?}");
                    for code in *codes {
                        assert!(super::super::rule(code).is_some(), "{words:?}: {code}");
                    }
                }
                Harmless(why) => assert!(why.len() > 10 && !why.ends_with('.'), "{words:?}"),
                Unexplained => {}
            }
            // A row that an earlier one hides is never met.
            let hidden = FAMILIES.iter().take(at).any(|earlier| {
                earlier.words.iter().all(|word| words.iter().any(|own| own.contains(word)))
            });
            assert!(!hidden, "{words:?}");
        }
    }
}
