//! What the drivers of the RDMA stack and the programs on it write when something is
//! wrong, by families: what one source file writes, and what stands for one thing. Each has
//! the words of its messages, the file that prints them, and what they stand for.

use super::super::evidence::Event;
use crate::report::common::Code;

/// A family of messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    /// Its messages: for each the words that all stand in it; by the first it is looked for.
    pub texts: &'static [&'static [&'static str]],
    /// The file that prints it: of Linux, or of the named project.
    pub source: &'static str,
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

    /// The words of the message of this family that `text` is.
    pub(super) fn words_in(&self, text: &str) -> Option<&'static [&'static str]> {
        self.texts.iter().find(|words| words.iter().all(|word| text.contains(word))).copied()
    }
}

pub(super) fn of(event: &Event) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.words_in(&event.text).is_some())
}

/// The words by which the families are looked for.
pub(super) fn needles() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().flat_map(|family| family.texts).filter_map(|words| words.first().copied())
}

use Meaning::{Harmless, Sign, Unexplained};

const fn family(
    texts: &'static [&'static [&'static str]],
    source: &'static str,
    meaning: Meaning,
) -> Family {
    Family { texts, source, meaning }
}

/// Every family.
pub(super) const FAMILIES: &[Family] = &[
    family(
        &[&["Firmware over", "aborting"]],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&[Code::FwInitTimeout]),
    ),
    family(
        &[&["Waiting for FW", "timeout abort"]],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Harmless("the firmware takes longer than usual; a failure has a line of its own"),
    ),
    family(
        &[
            &["Missing registers BAR"],
            &["Couldn't get PCI resources"],
            &["error requesting BARs"],
            &["Failed mapping initialization segment"],
            &["QUERY_HCA_CAP : type"],
            &["handle_hca_cap", "failed"],
            &["Failed to query ISSI"],
            &["enable hca failed"],
            &["init hca failed"],
            &["set_hca_cap failed"],
            &["set_hca_ctrl failed"],
            &["query hca failed"],
            &["query board id failed"],
            &["failed to allocate boot pages"],
            &["failed to allocate init pages"],
            &["Failed allocating uar"],
            &["Failed to alloc IRQs"],
            &["Failed to create EQs"],
            &["Failed to init flow steering"],
            &["Failed to init eswitch"],
            &["sw objs init failed"],
            &["wait vital failed"],
            &["mlx5_init_one failed"],
            &["mlx5_load_one failed"],
            &["mlx5_pci_init failed"],
        ],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Sign(&[Code::DriverRegression, Code::VfProbeFailed, Code::FwInitTimeout]),
    ),
    family(
        &[&["Query ISSI is not supported"]],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Harmless("an older firmware; the driver goes on with ISSI 0"),
    ),
    family(
        &[&["tear_down_hca failed"]],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Unexplained,
    ),
    family(
        &[&["interface is down, NOP"]],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Harmless("the function was unloaded already"),
    ),
    family(
        &[&["interface is up, NOP"]],
        "drivers/net/ethernet/mellanox/mlx5/core/main.c",
        Harmless("the function was loaded already"),
    ),
    family(
        &[
            &["Fatal error", " detected"],
            &["health compromised"],
            &["health recovery failed"],
            &["health recovery flow aborted"],
            &["NIC IFC still"],
            &["PCI slot is unavailable"],
            &["Health issue observed"],
            &["Cold reset is required"],
            &["handling bad device here"],
            &["starting health recovery flow"],
            &["Driver is in error state"],
            &["assert_exit_ptr"],
            &["assert_var["],
            &["assert_callra"],
        ],
        "drivers/net/ethernet/mellanox/mlx5/core/health.c",
        Sign(&[Code::FirmwareFatal]),
    ),
    family(
        &[&["timeout. Will cause a leak"], &["No done completion"]],
        "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        Sign(&[
            Code::FwInitTimeout,
            Code::FirmwareFatal,
            Code::DriverRegression,
            Code::VfProbeFailed,
        ]),
    ),
    family(
        &[&["recovered after timeout"]],
        "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        Harmless(
            "the completion was present and its interrupt was late; the driver has read the completion",
        ),
    ),
    family(
        &[&["All CMD slots are stalled"], &["timed out while waiting for a slot"]],
        "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        Unexplained,
    ),
    family(
        &[&["Driver cmdif rev", "differs"]],
        "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        Sign(&[Code::FirmwareTooOld]),
    ),
    family(
        &[&["op_mod(", "failed, status"]],
        "drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        Sign(&[Code::DriverRegression, Code::VfProbeFailed, Code::NotAsExpected]),
    ),
    family(
        &[
            &["failed to enable eswitch SRIOV"],
            &["failed to enable VF"],
            &["pci_enable_sriov failed"],
            &["mlx5_device_enable_sriov failed"],
            &["unable to restore VF"],
            &["failed to restore VF"],
        ],
        "drivers/net/ethernet/mellanox/mlx5/core/sriov.c",
        Sign(&[Code::VfProbeFailed, Code::SriovMmio, Code::SriovNotEnabledFw, Code::NotAsExpected]),
    ),
    family(
        &[&["timeout reclaiming VFs pages"], &["failed to disable VF"]],
        "drivers/net/ethernet/mellanox/mlx5/core/sriov.c",
        Unexplained,
    ),
    family(
        &[&["Failed to request irq"]],
        "drivers/net/ethernet/mellanox/mlx5/core/pci_irq.c",
        Sign(&[Code::DriverRegression, Code::VfProbeFailed, Code::FwInitTimeout]),
    ),
    family(
        &[&["Failed to create async EQs"]],
        "drivers/net/ethernet/mellanox/mlx5/core/eq.c",
        Sign(&[Code::DriverRegression, Code::VfProbeFailed, Code::FwInitTimeout]),
    ),
    family(
        &[
            &["maximum number of vectors is allocated"],
            &["CQ error on CQN"],
            &["Async event for bogus CQ"],
        ],
        "drivers/net/ethernet/mellanox/mlx5/core/eq.c",
        Unexplained,
    ),
    family(
        &[&["EQEs on cmd_eq"]],
        "drivers/net/ethernet/mellanox/mlx5/core/eq.c",
        Harmless("a poll has read the events whose interrupt was late"),
    ),
    family(
        &[&["High temperature on sensors"]],
        "drivers/net/ethernet/mellanox/mlx5/core/events.c",
        Unexplained,
    ),
    family(
        &[
            &["PCI Sync FW Update Reset"],
            &["Sync Reset now"],
            &["Sync Reset Unload"],
            &["FW sync reset timeout"],
            &["Sync reset did not complete"],
            &["waiting for sync reset action"],
            &["Firmware is not responsive"],
            &["PCI link not ready"],
        ],
        "drivers/net/ethernet/mellanox/mlx5/core/fw_reset.c",
        Sign(&[Code::FirmwareResetPending, Code::FirmwareFatal, Code::FwInitTimeout]),
    ),
    family(
        &[
            &["failed reclaiming pages"],
            &["FW did not return all pages"],
            &["aborting while there are", "pending pages"],
        ],
        "drivers/net/ethernet/mellanox/mlx5/core/pagealloc.c",
        Unexplained,
    ),
    family(
        &[&["exceeding the limit", "pages to func"]],
        "drivers/net/ethernet/mellanox/mlx5/core/pagealloc.c",
        Sign(&[Code::VfProbeFailed, Code::SriovMmio, Code::SriovNotEnabledFw, Code::NotAsExpected]),
    ),
    family(
        &[&["PCIe width is lower"], &["PCIe speed is slower"]],
        "drivers/net/ethernet/mellanox/mlx5/core/uar.c",
        Sign(&[Code::PcieLinkReduced]),
    ),
    family(
        &[
            &["failed to allocate device WQ"],
            &["failed to init HW resource"],
            &["ib_query_pkey port", "failed"],
            &["failed to initialize device:"],
            &["ipoib_intf_alloc failed"],
            &["couldn't register ipoib port"],
        ],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Sign(&[Code::DriverRegression, Code::ModuleLoadInterrupted, Code::ModuleLoadOrder]),
    ),
    family(
        &[&["transmit timeout: latency"]],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Sign(&[Code::DriverRegression]),
    ),
    family(
        &[&["Connected Mode not supported"]],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Unexplained,
    ),
    family(
        &[&["mac address change is unsupported"]],
        "drivers/infiniband/ulp/ipoib/ipoib_main.c",
        Harmless("the address of an IPoIB netdev is derived from its GUID and cannot be set"),
    ),
    family(
        &[&["timing out;", "receives not completed"], &["will stay in state:"]],
        "drivers/infiniband/ulp/ipoib/ipoib_ib.c",
        Unexplained,
    ),
    family(
        &[&["failed to create receive CQ"], &["failed to create QP"], &["failed to modify QP"]],
        "drivers/infiniband/ulp/ipoib/ipoib_verbs.c",
        Sign(&[Code::DriverRegression, Code::ModuleLoadInterrupted, Code::ModuleLoadOrder]),
    ),
    family(
        &[&["ib_sa_join_multicast failed"]],
        "drivers/infiniband/ulp/ipoib/ipoib_multicast.c",
        Sign(&[Code::NoSubnetManager]),
    ),
    family(
        &[
            &["Couldn't register device with driver model"],
            &["Couldn't create per-port data"],
            &["Couldn't set up InfiniBand P_Key/GID cache"],
        ],
        "drivers/infiniband/core/device.c",
        Sign(&[Code::DriverRegression, Code::VfProbeFailed]),
    ),
    family(
        &[&["Couldn't init IB MAD"], &["Couldn't rename device after namespace"]],
        "drivers/infiniband/core/device.c",
        Unexplained,
    ),
    family(
        &[
            &["Couldn't create ib_mad"],
            &["Fatal error (", "on MAD QP"],
            &["state to INIT:", "Couldn't change QP"],
            &["ib_post_send failed"],
            &["Couldn't start port"],
        ],
        "drivers/infiniband/core/mad.c",
        Unexplained,
    ),
    family(
        &[&["already present!", "_mcg'"], &["already present!", "_path'"]],
        "fs/debugfs/inode.c",
        Harmless("two netdevs had one name for a moment, and a file for debugging is missing"),
    ),
    family(
        &[&["did not enable P_Key index support"]],
        "drivers/infiniband/core/user_mad.c",
        Harmless("an old program uses the first P_Key alone"),
    ),
    family(
        &[
            &["REJ reason"],
            &["Path record query failed"],
            &["giving up on stale connection"],
            &["No route available from"],
        ],
        "drivers/infiniband/ulp/srp/ib_srp.c",
        Unexplained,
    ),
    family(
        &[&["may cause SRP login to fail"]],
        "drivers/infiniband/ulp/srp/ib_srp.c",
        Harmless("the subnet timeout is longer than usual"),
    ),
    family(
        &[&["PARSE ERROR partition conf"]],
        "opensm: opensm/osm_prtn_config.c",
        Sign(&[Code::OpensmPartitionsRejected]),
    ),
    family(
        &[&["Partition configuration in error"]],
        "opensm: opensm/osm_prtn.c",
        Sign(&[Code::OpensmPartitionsRejected]),
    ),
    family(
        &[&["Error from osm_opensm_bind"]],
        "opensm: opensm/main.c",
        Sign(&[Code::OpensmMisconfigured, Code::OpensmOtherPort]),
    ),
    family(
        &[&["ERR 5424"]],
        "opensm: libvendor/osm_vendor_ibumad.c",
        Sign(&[Code::OpensmMisconfigured, Code::OpensmOtherPort]),
    ),
    family(
        &[&["ERR 5415"]],
        "opensm: libvendor/osm_vendor_ibumad.c",
        Sign(&[Code::OpensmMisconfigured]),
    ),
    family(
        &[&["unable to open any devices"], &["unable to open MAD port"]],
        "rdma-core: ibacm/src/acm.c",
        Sign(&[Code::RdmaServiceFailed, Code::ModuleNotLoaded]),
    ),
    family(
        &[&["Querying SRP targets failed"], &["Couldn't read SM LID"]],
        "rdma-core: srp_daemon/srp_daemon.c",
        Unexplained,
    ),
    family(
        &[&["has not yet recovered from catas error"]],
        "rdma-core: srp_daemon/srp_daemon.c",
        Sign(&[Code::FirmwareFatal]),
    ),
    family(
        &[
            &["Failed to reset HCA"],
            &["Failed to init command interface"],
            &["Failed to init fw, aborting"],
        ],
        "drivers/net/ethernet/mellanox/mlx4/main.c",
        Sign(&[Code::DriverRegression, Code::VfProbeFailed, Code::FwInitTimeout]),
    ),
    family(
        &[&["Failed to init slave mfunc"]],
        "drivers/net/ethernet/mellanox/mlx4/main.c",
        Sign(&[Code::VfProbeFailed, Code::DriverRegression]),
    ),
    family(
        &[&["continuing without SR-IOV"]],
        "drivers/net/ethernet/mellanox/mlx4/main.c",
        Sign(&[Code::SriovNotEnabledFw, Code::SriovMmio, Code::NotAsExpected]),
    ),
    family(
        &[&["Missing DCS, aborting"]],
        "drivers/net/ethernet/mellanox/mlx4/main.c",
        Sign(&[Code::PciBarUnassigned, Code::DriverRegression, Code::VfProbeFailed]),
    ),
    family(
        &[&["communication channel command 0x", "timed out"]],
        "drivers/net/ethernet/mellanox/mlx4/cmd.c",
        Sign(&[Code::VfProbeFailed, Code::FwInitTimeout]),
    ),
    family(
        &[&["failed: fw status = 0x"]],
        "drivers/net/ethernet/mellanox/mlx4/cmd.c",
        Sign(&[
            Code::DriverRegression,
            Code::VfProbeFailed,
            Code::FwInitTimeout,
            Code::NotAsExpected,
        ]),
    ),
    family(
        &[&["for res init, err="], &["mr cache init failed"]],
        "drivers/infiniband/hw/mlx5/main.c",
        Sign(&[Code::DriverRegression, Code::VfProbeFailed]),
    ),
    family(
        &[&["query_hca_vport_context for port="]],
        "drivers/infiniband/hw/mlx5/main.c",
        Unexplained,
    ),
    family(
        &[
            &["Failed to initialize RCFW"],
            &["Failed to allocate RCFW Channel"],
            &["Failed to register with IB:"],
        ],
        "drivers/infiniband/hw/bnxt_re/main.c",
        Sign(&[Code::DriverRegression]),
    ),
    family(&[&["Failed to query hwrm qcaps"]], "drivers/infiniband/hw/bnxt_re/main.c", Unexplained),
    family(
        &[&["auxiliary_driver_register() ret="]],
        "drivers/infiniband/hw/irdma/main.c",
        Sign(&[Code::DriverRegression, Code::ModuleSymbolMismatch]),
    ),
    family(&[&["too low for RDMA traffic"]], "drivers/infiniband/hw/irdma/main.c", Unexplained),
    family(&[&["failed, SQ has more work"]], "drivers/infiniband/hw/irdma/hw.c", Unexplained),
    family(
        &[&["Failed to allocate eager buffers"]],
        "drivers/infiniband/hw/hfi1/init.c",
        Sign(&[Code::DriverRegression]),
    ),
    family(
        &[&["Invalid Eager buffer size"], &["Invalid HdrQ Entry size"]],
        "drivers/infiniband/hw/hfi1/init.c",
        Sign(&[Code::ModuleParameter]),
    ),
    family(
        &[&["Can't query IPoIB interface"]],
        "lustre: lnet/klnds/o2iblnd/o2iblnd.c",
        Sign(&[
            Code::OrderingMissing,
            Code::MountBeforeIpoib,
            Code::ModuleNotLoaded,
            Code::PortNotReady,
        ]),
    ),
    family(
        &[&["is not viable"]],
        "qemu: hw/vfio/common.c",
        Sign(&[Code::IommuOff, Code::VmBeforeVf, Code::AutostartGuestOnVf]),
    ),
    family(
        &[&["is not assignable"]],
        "libvirt: src/hypervisor/virhostdev.c",
        Sign(&[Code::IommuOff, Code::VmBeforeVf, Code::AutostartGuestOnVf]),
    ),
    family(
        &[&["Timed out waiting for device"]],
        "systemd: src/core/device.c",
        Sign(&[
            Code::UdevTimeout,
            Code::PortNotReady,
            Code::ModuleNotLoaded,
            Code::OrderingMissing,
        ]),
    ),
    family(
        &[&["still waiting for following initqueue hooks"]],
        "dracut: modules.d/98dracut-systemd/dracut-initqueue.sh",
        Sign(&[Code::InitrdWithoutFabric, Code::ModuleMissingInInitrd]),
    ),
    family(
        &[&["Failed to rename network interface"], &["is already up, cannot rename to"]],
        "systemd: src/udev/udev-event.c",
        Sign(&[Code::NetdevRenamed, Code::IfcfgMismatch, Code::NetdevLate, Code::NotAsExpected]),
    ),
    family(
        &[
            &["Spawned process '", "timed out after"],
            &["Spawned process '", "is taking longer than"],
        ],
        "systemd: src/udev/udev-event.c",
        Sign(&[Code::UdevTimeout, Code::DriverRegression, Code::FwInitTimeout]),
    ),
    family(
        &[&["failed with exit code", "Process '"], &["terminated by signal", "Process '"]],
        "systemd: src/udev/udev-event.c",
        Unexplained,
    ),
    family(
        &[
            &["processing SEQNUM=", "killed"],
            &["processing SEQNUM=", "is taking a long time"],
            &["terminated by signal", "Worker ["],
        ],
        "systemd: src/udev/udevd.c",
        Sign(&[Code::UdevTimeout, Code::DriverRegression, Code::FwInitTimeout]),
    ),
    family(
        &[&["Could not generate persistent MAC"], &["Could not generate random MAC"]],
        "systemd: src/udev/net/link-config.c",
        Harmless("the address of an IPoIB netdev is derived from its GUID, and none is generated"),
    ),
    family(
        &[&["Failed to insert module '"]],
        "systemd: src/shared/module-util.c",
        Sign(&[
            Code::ModuleSymbolMismatch,
            Code::ModuleInitSlow,
            Code::ModuleSignatureRefused,
            Code::ModuleParameter,
            Code::ModuleMissingForKernel,
            Code::ModuleDenied,
            Code::DriverRegression,
            Code::OpenibdFailed,
            Code::ModuleNotLoaded,
        ]),
    ),
    family(
        &[&["Failed to find module '"], &["Failed to look up module alias '"]],
        "systemd: src/shared/module-util.c",
        Sign(&[
            Code::ModuleMissingForKernel,
            Code::ModuleMissingInInitrd,
            Code::ModuleNotLoaded,
            Code::ModuleWrongDriver,
            Code::OpenibdFailed,
            Code::RdmaServiceFailed,
        ]),
    ),
    family(
        &[
            &["Found ordering cycle on"],
            &["deleted to break ordering cycle"],
            &["Unable to break cycle starting with"],
        ],
        "systemd: src/core/transaction.c",
        Sign(&[Code::OrderingCycle]),
    ),
    family(
        &[&["Mounting timed out. Terminating"], &["Mount process finished, but there is no mount"]],
        "systemd: src/core/mount.c",
        Sign(&[
            Code::OrderingMissing,
            Code::MountBeforeIpoib,
            Code::MountBeforeNetwork,
            Code::PortNotReady,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::NetdevLate,
            Code::ModuleNotLoaded,
            Code::NotAsExpected,
        ]),
    ),
    family(
        &[&["Mount process still around after SIGKILL"]],
        "systemd: src/core/mount.c",
        Unexplained,
    ),
    family(
        &[&["Dependency failed for "], &["/start timed out.", "Job "]],
        "systemd: src/core/job.c",
        Sign(&[
            Code::OpenibdFailed,
            Code::UdevTimeout,
            Code::WaitOnlineTimeout,
            Code::RdmaServiceFailed,
            Code::StartWaitDeadlock,
            Code::OrderingMissing,
            Code::MountBeforeIpoib,
            Code::MountBeforeNetwork,
            Code::PortNotReady,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::NetdevLate,
            Code::ModuleNotLoaded,
            Code::NotAsExpected,
        ]),
    ),
    family(
        &[&["start operation timed out"]],
        "systemd: src/core/service.c",
        Sign(&[
            Code::OpenibdFailed,
            Code::StartWaitDeadlock,
            Code::WaitOnlineTimeout,
            Code::UdevTimeout,
            Code::FwInitTimeout,
            Code::RdmaServiceFailed,
            Code::NotAsExpected,
        ]),
    ),
    family(
        &[&["Start request repeated too quickly"]],
        "systemd: src/core/unit.c",
        Sign(&[
            Code::OpenibdFailed,
            Code::RdmaServiceFailed,
            Code::OpensmMisconfigured,
            Code::OrderingMissing,
            Code::NotAsExpected,
        ]),
    ),
    family(
        &[&["Failed to set IPoIB configurations"], &["Failed to set MTU, ignoring"]],
        "systemd: src/network/networkd-setlink.c",
        Unexplained,
    ),
    family(
        &[&["Failed to set MAC address, ignoring"]],
        "systemd: src/network/networkd-setlink.c",
        Harmless("the address of an IPoIB netdev is derived from its GUID and cannot be set"),
    ),
    family(
        &[&["Failed to set link flags"]],
        "systemd: src/network/networkd-setlink.c",
        Sign(&[
            Code::NetdevAdminDown,
            Code::IfcfgMismatch,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::NetworkStackBug,
            Code::IpoibParentDown,
            Code::NetdevLate,
            Code::NetdevRenamed,
            Code::PortNotReady,
            Code::NotAsExpected,
        ]),
    ),
    family(
        &[&["ould not bring up interface"]],
        "systemd: src/network/networkd-link.c",
        Sign(&[
            Code::NetdevAdminDown,
            Code::IfcfgMismatch,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::NetworkStackBug,
            Code::IpoibParentDown,
            Code::NetdevLate,
            Code::NetdevRenamed,
            Code::PortNotReady,
            Code::NotAsExpected,
        ]),
    ),
    family(
        &[
            &["IPoIB pkey cannot be 0 nor 0x8000"],
            &["Failed to parse IPoIB pkey '"],
            &["Failed to parse IPoIB mode"],
        ],
        "systemd: src/network/netdev/ipoib.c",
        Unexplained,
    ),
    family(
        &[&["netdev could not be created"], &["Could not create stacked netdev"]],
        "systemd: src/network/netdev/netdev.c",
        Sign(&[
            Code::IpoibParentDown,
            Code::NetworkStackBug,
            Code::NetdevLate,
            Code::NetdevRenamed,
            Code::ModuleNotLoaded,
        ]),
    ),
    family(
        &[&["Timeout occurred while waiting for network"]],
        "systemd: src/network/wait-online/wait-online.c",
        Sign(&[
            Code::WaitOnlineTimeout,
            Code::NetdevAdminDown,
            Code::IfcfgMismatch,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::NetworkStackBug,
            Code::IpoibParentDown,
            Code::NetdevLate,
            Code::NetdevRenamed,
            Code::PortNotReady,
            Code::NotAsExpected,
        ]),
    ),
    family(
        &[
            &["failed to set SR-IOV parameters"],
            &["failed to apply SR-IOV VF"],
            &["failed to reapply SRIOV VFs"],
        ],
        "NetworkManager: src/core/devices/nm-device.c",
        Sign(&[
            Code::SriovNotEnabledFw,
            Code::SriovMmio,
            Code::SriovNotExposedKernel,
            Code::VfProbeFailed,
            Code::NotAsExpected,
        ]),
    ),
    family(
        &[
            &["Activation: failed for connection"],
            &["not up for IP configuration"],
            &["device not up after timeout"],
            &["because device is still unmanaged"],
            &["could not be attached as port"],
        ],
        "NetworkManager: src/core/devices/nm-device.c",
        Sign(&[
            Code::NetdevAdminDown,
            Code::IfcfgMismatch,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::NetworkStackBug,
            Code::IpoibParentDown,
            Code::NetdevLate,
            Code::NetdevRenamed,
            Code::PortNotReady,
            Code::NotAsExpected,
        ]),
    ),
    family(
        &[&["mtu: failure to"], &["cannot parse the VF list"], &["firmware may be missing."]],
        "NetworkManager: src/core/devices/nm-device.c",
        Unexplained,
    ),
    family(
        &[&["set-hw-addr: "]],
        "NetworkManager: src/core/devices/nm-device.c",
        Harmless("the address of an IPoIB netdev is derived from its GUID and cannot be set"),
    ),
    family(
        &[&["ethtool: failure"]],
        "NetworkManager: src/core/devices/nm-device.c",
        Harmless("the adapter does not have a setting of the profile, which goes on without it"),
    ),
    family(
        &[&["failed to get InfiniBand parent"], &["only InfiniBand partitions can be created"]],
        "NetworkManager: src/core/devices/nm-device-infiniband.c",
        Sign(&[Code::IpoibParentDown, Code::NetdevLate, Code::NetdevRenamed, Code::IfcfgMismatch]),
    ),
    family(
        &[&["infiniband connection specified PKEY but"], &["invalid infiniband PKEY_ID '"]],
        "NetworkManager: src/core/settings/plugins/ifcfg-rh/nms-ifcfg-rh-reader.c",
        Sign(&[Code::IfcfgMismatch, Code::NetworkStackBug]),
    ),
    family(
        &[
            &["Must specify a P_Key if specifying parent"],
            &["P_Key connection did not specify parent"],
            &["interface name of software infiniband device"],
        ],
        "NetworkManager: src/libnm-core-impl/nm-setting-infiniband.c",
        Sign(&[Code::IfcfgMismatch, Code::NetworkStackBug]),
    ),
    family(
        &[
            &["cannot allocate more VFs for PF"],
            &["failed setting sriov_numvfs to"],
            &["failed parsing sriov_totalvfs for"],
            &["invalid sriov_totalvfs value for"],
        ],
        "netplan: netplan_cli/cli/sriov.py",
        Sign(&[
            Code::SriovNotEnabledFw,
            Code::SriovMmio,
            Code::SriovNotExposedKernel,
            Code::VfProbeFailed,
            Code::NotAsExpected,
        ]),
    ),
    family(
        &[&["busy while setting sriov_numvfs for"]],
        "netplan: netplan_cli/cli/sriov.py",
        Harmless("netplan removes the VFs first and tries again; a failure has a line of its own"),
    ),
    family(
        &[&["matched more than one interface for a"]],
        "netplan: netplan_cli/cli/sriov.py",
        Sign(&[Code::IfcfgMismatch, Code::NetdevRenamed]),
    ),
    family(&[&["Unbinding of VFs for"]], "netplan: netplan_cli/cli/sriov.py", Unexplained),
    family(
        &[&["Cannot find unique matching interface for"]],
        "netplan: netplan_cli/cli/commands/apply.py",
        Sign(&[Code::IfcfgMismatch, Code::NetdevLate, Code::NetdevRenamed, Code::ModuleNotLoaded]),
    ),
    family(
        &[
            &["Cannot determine SR-IOV PF interface name"],
            &["Cannot rebind SR-IOV virtual functions"],
        ],
        "netplan: src/gen-sriov.c",
        Unexplained,
    ),
    family(
        &[&["is too long. It will be ignored by"]],
        "netplan: src/validation.c",
        Sign(&[Code::IfcfgMismatch]),
    ),
    family(
        &[
            &["ailed to bring up "],
            &["could not bring up parent interface", "ifup: "],
            &["gnoring unknown interface"],
            &["unknown interface ", "ifup: "],
        ],
        "ifupdown: main.c",
        Sign(&[
            Code::OpenibdDisabled,
            Code::ModuleLoadedLate,
            Code::ModuleNotLoaded,
            Code::IfupSkippedOsBooting,
            Code::NetdevAdminDown,
            Code::IfcfgMismatch,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::NetworkStackBug,
            Code::IpoibParentDown,
            Code::NetdevLate,
            Code::NetdevRenamed,
            Code::PortNotReady,
            Code::NotAsExpected,
        ]),
    ),
    family(
        &[
            &["No carrier detected on interface"],
            &["Could not bring interface", "up!"],
            &["dhcp for interface", "failed"],
        ],
        "dracut: modules.d/35network-legacy/ifup.sh",
        Sign(&[
            Code::InitrdWithoutFabric,
            Code::ModuleMissingInInitrd,
            Code::ModuleNotLoaded,
            Code::NetdevRenamed,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::PortNotReady,
            Code::DriverUnloadUnderRemoteRoot,
        ]),
    ),
    family(
        &[&["Network interface '", "' does not exist"]],
        "dracut: modules.d/35network-legacy/parse-ip-opts.sh",
        Sign(&[
            Code::InitrdWithoutFabric,
            Code::ModuleMissingInInitrd,
            Code::ModuleNotLoaded,
            Code::NetdevRenamed,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::PortNotReady,
            Code::DriverUnloadUnderRemoteRoot,
        ]),
    ),
    family(
        &[&["Could not boot."], &["Can't mount root filesystem"]],
        "dracut: modules.d/80base/init.sh",
        Sign(&[
            Code::UdevTimeout,
            Code::InitrdWithoutFabric,
            Code::ModuleMissingInInitrd,
            Code::ModuleNotLoaded,
            Code::NetdevRenamed,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::PortNotReady,
            Code::DriverUnloadUnderRemoteRoot,
        ]),
    ),
    family(
        &[&["Log-in to iscsi target failed"], &["Target discovery to", "failed"]],
        "dracut: modules.d/74iscsi/iscsiroot.sh",
        Sign(&[
            Code::InitrdWithoutFabric,
            Code::ModuleMissingInInitrd,
            Code::ModuleNotLoaded,
            Code::NetdevRenamed,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::PortNotReady,
            Code::DriverUnloadUnderRemoteRoot,
        ]),
    ),
    family(
        &[&["\" not in the initramfs, or support for"]],
        "dracut: modules.d/74nfs/nfs-start-rpc.sh",
        Sign(&[Code::ModuleMissingInInitrd, Code::InitrdWithoutFabric]),
    ),
    family(
        &[&["ERROR: installing module '"], &["Failed to get name for module '"]],
        "dracut: src/install/dracut-install.c",
        Sign(&[Code::ModuleMissingInInitrd, Code::InitrdWithoutFabric]),
    ),
    family(
        &[&["Network device did not appear in time"]],
        "initramfs-tools: scripts/functions",
        Sign(&[
            Code::InitrdWithoutFabric,
            Code::ModuleMissingInInitrd,
            Code::ModuleNotLoaded,
            Code::NetdevRenamed,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::PortNotReady,
            Code::DriverUnloadUnderRemoteRoot,
        ]),
    ),
    family(
        &[&["Gave up waiting for root"], &["Failed to mount", "as root file system"]],
        "initramfs-tools: scripts/local",
        Sign(&[
            Code::UdevTimeout,
            Code::InitrdWithoutFabric,
            Code::ModuleMissingInInitrd,
            Code::ModuleNotLoaded,
            Code::NetdevRenamed,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::PortNotReady,
            Code::DriverUnloadUnderRemoteRoot,
        ]),
    ),
    family(
        &[&["ipconfig: ", "SIOCGIFINDEX"]],
        "klibc: usr/kinit/ipconfig/netdev.c",
        Sign(&[
            Code::InitrdWithoutFabric,
            Code::ModuleMissingInInitrd,
            Code::ModuleNotLoaded,
            Code::NetdevRenamed,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::PortNotReady,
            Code::DriverUnloadUnderRemoteRoot,
        ]),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_can_be_found_and_names_rules_and_its_source() {
        assert!(FAMILIES.len() <= 150, "{}", FAMILIES.len());
        let mut earlier: Vec<&[&str]> = Vec::new();
        for Family { texts, source, meaning } in FAMILIES {
            assert!(!texts.is_empty(), "{source}");
            for words in *texts {
                assert!(words.first().is_some_and(|word| word.len() >= 3), "{words:?}");
                assert!(words.iter().all(|word| word.len() <= 60), "{words:?}");
                // One that an earlier one hides is never met.
                let is_hidden = earlier.iter().any(|hiding| {
                    hiding.iter().all(|word| words.iter().any(|own| own.contains(word)))
                });
                assert!(!is_hidden, "{words:?}");
                earlier.push(words);
            }
            assert!(source.contains('.') || source.contains('/'), "{texts:?}: {source}");
            match meaning {
                Sign(codes) => {
                    assert!(!codes.is_empty(), "{texts:?}");
                    for code in *codes {
                        assert!(super::super::rule(*code).is_some(), "{texts:?}: {code}");
                    }
                }
                Harmless(why) => assert!(why.len() > 10 && !why.ends_with('.'), "{texts:?}"),
                Unexplained => {}
            }
            // One source and one meaning are one family.
            let same = FAMILIES.iter().filter(|f| (f.source, f.meaning) == (*source, *meaning));
            assert_eq!(same.count(), 1, "{source}: {meaning:?}");
        }
    }

    /// What the programs of the boot write about a netdev, a mount or a unit of ours.
    #[test]
    fn the_words_of_the_programs_around_the_stack_are_known() {
        let of = |text: &str| FAMILIES.iter().find(|family| family.words_in(text).is_some());
        for (text, source) in [
            ("ib1: Failed to rename network interface 5 from 'ib1' to 'ib0': File exists", "udev"),
            ("ib0: Failed to set MTU, ignoring: Invalid argument", "networkd-setlink"),
            ("ib0.8001: netdev could not be created: No such device", "netdev/netdev"),
            ("device (ib0): interface ib0 not up for IP configuration", "nm-device.c"),
            ("failed setting sriov_numvfs to 8 for ib0: [Errno 28]", "sriov.py"),
            ("ifup: failed to bring up ib0", "ifupdown"),
            ("Warning: No carrier detected on interface ib0", "ifup.sh"),
            ("ipconfig: ib0: SIOCGIFINDEX: No such device", "ipconfig"),
            ("srv-ib0.mount: Mounting timed out. Terminating.", "core/mount"),
            ("Failed to find module 'ib_ipoib'", "module-util"),
        ] {
            let found = of(text).map(|family| family.source).unwrap_or_default();
            assert!(found.contains(source), "{text}: {found}");
        }
        assert!(of("ib0: Gained carrier").is_none());
    }
}
