//! Why nothing can be done at a PF, with what to do about it.

use serde::Serialize;

use super::common::{Code, Finding};
use super::firmware::{how_to_set, link_type};
use crate::names::{LinkLayer, Object, PciAddress};

/// Why nothing can be done at a PF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum PfProblem {
    /// It is not on the bus.
    #[error(
        "no PCI function has this address; the adapter may be in another slot, see `lspci -D -d 15b3:`"
    )]
    Absent,
    /// No driver is bound to it.
    #[error("no driver is bound to the PF, so that it cannot have VFs: see `lspci -k` and dmesg")]
    NoDriver,
    /// It is a VF.
    #[error("this function is a VF of {pf}, not a PF")]
    IsVf {
        /// Its PF.
        pf: PciAddress,
    },
    /// It has no SR-IOV.
    #[error(
        "the PF has no SR-IOV (sriov_totalvfs is 0 or missing). To fix: {}; SR-IOV has to be enabled in the firmware setup too",
        how_to_set(pf, &format!("SRIOV_EN=1 NUM_OF_VFS={wanted}"), false)
    )]
    NoSriov {
        /// The PF.
        pf: PciAddress,
        /// Number of VFs in the plan.
        wanted: usize,
    },
    /// It cannot have so many VFs.
    #[error(
        "{wanted} VFs are planned, but sriov_totalvfs is {total}. To fix: {}",
        how_to_set(pf, &format!("NUM_OF_VFS={wanted}"), false)
    )]
    TooMany {
        /// The PF.
        pf: PciAddress,
        /// Number of VFs in the plan.
        wanted: usize,
        /// The most it can have.
        total: u16,
    },
    /// Its port is in Ethernet mode.
    #[error(
        "the port is in Ethernet mode, in which VFs have no GUIDs. To fix: {}; or remove the PF from the plan",
        how_to_set(pf, &link_type(*pf, LinkLayer::InfiniBand), false)
    )]
    Ethernet {
        /// The PF.
        #[serde(skip)]
        pf: PciAddress,
    },
    /// Its RDMA device is not there yet, or not the netdev through which its
    /// VFs are administered.
    #[error("{}", if *.netdev { NO_NETDEV } else { "the driver of the PF has registered no RDMA device; see dmesg" })]
    NotReady {
        /// It is the netdev that is missing.
        netdev: bool,
    },
    /// What it administers for its VFs is not known, so nothing can be compared.
    #[error(
        "the settings of the VFs at the PF cannot be read: {why}. The driver or the firmware may hang: see dmesg and `ibprov status`"
    )]
    Unreadable {
        /// What was tried, and the answer; in JSON `reason`.
        #[serde(rename = "reason")]
        why: String,
    },
    /// mlx4 creates its VFs when the driver is loaded.
    #[error(
        "mlx4_core creates its VFs when it is loaded: {wanted} are planned and {present} are present. To fix: set `options mlx4_core num_vfs={wanted} probe_vf={wanted}` in /etc/modprobe.d, rebuild the initramfs if it contains mlx4_core, and reboot"
    )]
    Mlx4Count {
        /// Number of VFs in the plan.
        wanted: usize,
        /// Number of VFs there.
        present: usize,
    },
    /// Another run is at work there.
    #[error(
        "{} holds {lock}: see `journalctl -u 'ibprov-pf@*'`",
        owner.map_or_else(|| "an unknown process".to_owned(), |pid| format!("process {pid}"))
    )]
    Busy {
        /// The path of the PF's lock.
        lock: String,
        /// The process that has taken it.
        owner: Option<u32>,
    },
}

const NO_NETDEV: &str = "the PF has no IPoIB netdev, which is needed to set GUIDs of VFs (this host has no sriov/N files of MLNX_OFED). To fix: load ib_ipoib, and see dmesg";

impl PfProblem {
    /// The name by which programs know it.
    pub const fn code(&self) -> Code {
        match self {
            Self::Absent => Code::PfAbsent,
            Self::IsVf { .. } => Code::PfIsVf,
            Self::NoSriov { .. } => Code::SriovNotEnabledFw,
            Self::TooMany { .. } => Code::TooManyVfs,
            Self::Ethernet { .. } => Code::PfEthernet,
            Self::NoDriver
            | Self::NotReady { .. }
            | Self::Unreadable { .. }
            | Self::Mlx4Count { .. }
            | Self::Busy { .. } => Code::VfPlanBlocked,
        }
    }

    /// As every report has it, about the PF `object`.
    pub fn finding(&self, object: impl Into<Object>) -> Finding {
        Finding::error(self.code(), self.to_string()).about(object)
    }

    /// It may come by waiting.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::NotReady { .. })
    }
}
