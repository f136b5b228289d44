//! What a VF lacks to be as planned. Values that print themselves: in JSON they
//! are their texts.

use std::fmt;

use super::common::listed;
use crate::names::{Guid, IfName, Policy, RdmaName};

/// What is not as planned at a VF: the first that counts on its way up the ladder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VfLack {
    /// The VF does not exist.
    Absent,
    /// The PF administers other GUIDs for it; at least one.
    GuidsAtPf(Vec<GuidAtPf>),
    /// The subnet manager has not granted its alias GUID (mlx4).
    NotGranted {
        /// The port GUID of the plan, which the PF has asked for.
        planned: Guid,
        in_force: Guid,
    },
    /// Its link state at the PF.
    Policy {
        /// As the PF administers it.
        is: Policy,
        /// The policy of the plan.
        planned: Policy,
    },
    /// The driver bound to it.
    Driver(OtherDriver),
    /// Its driver has registered no RDMA device.
    NoRdmaDevice {
        /// The driver that is bound to it.
        driver: String,
    },
    /// Its driver is bound, and no RDMA device comes by waiting.
    HalfBound {
        /// The driver that is bound to it.
        driver: String,
    },
    /// ib_ipoib is loaded and has made no netdev for it.
    NoNetdev,
    /// It shows another GUID than the plan's, which its PF has.
    Shows(OtherGuid),
    /// A GUID that it shows cannot be read, which proves nothing.
    Unread(VfGuid),
    /// Its netdev is called otherwise than `vf-name` says.
    Netdev { is: IfName, planned: IfName },
    /// Its RDMA device is called otherwise than `vf-rdma-name` says.
    RdmaDevice { is: RdmaName, planned: RdmaName },
    /// A device of it is called otherwise than planned, and udev, which renames it, had not
    /// done all that it had to do.
    NotRenamed {
        /// The name that it has.
        is: String,
        /// The name that it shall have.
        planned: String,
    },
}

/// One of the GUIDs by which a VF is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VfGuid {
    /// The node GUID, at the PF or of the VF's RDMA device.
    Node,
    /// The port GUID: at the PF, or the low half of GID 0.
    Port,
    /// The last 8 bytes of the netdev's address.
    Netdev,
}

/// A GUID as the PF administers it, other than planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuidAtPf {
    pub which: VfGuid,
    /// As it is, if it can be read.
    pub is: Option<Guid>,
    /// The GUID of the plan.
    pub planned: Guid,
}

/// A GUID as the VF shows it, other than planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherGuid {
    /// The GUID that is meant.
    pub which: VfGuid,
    pub is: Guid,
    /// The GUID of the plan.
    pub planned: Guid,
}

/// A VF's driver, other than planned. `None` is no driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherDriver {
    /// The one bound to it.
    pub is: Option<String>,
    /// The one that it shall have.
    pub planned: Option<String>,
}

impl fmt::Display for VfGuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "node GUID",
            Self::Port => "port GUID",
            Self::Netdev => "netdev's GUID",
        })
    }
}

impl fmt::Display for GuidAtPf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { which, is, planned } = self;
        match is {
            Some(is) => write!(f, "the {which} at the PF is {is} instead of {planned}"),
            None => write!(f, "the {which} at the PF cannot be read; planned is {planned}"),
        }
    }
}

impl fmt::Display for OtherGuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} of the VF is {} instead of {}", self.which, self.is, self.planned)
    }
}

impl fmt::Display for OtherDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn name(driver: Option<&String>) -> &str {
            driver.map_or("none", String::as_str)
        }
        let (is, planned) = (name(self.is.as_ref()), name(self.planned.as_ref()));
        write!(f, "the driver is {is} instead of {planned}")
    }
}

/// How a VF gets its names.
const ANEW: &str = "unbind the VF from its driver (`echo PCI-ADDRESS >/sys/bus/pci/drivers/DRIVER/unbind`) and run `ibprov apply`";

impl fmt::Display for VfLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => write!(f, "the VF does not exist"),
            Self::GuidsAtPf(guids) => {
                let guids: Vec<String> = guids.iter().map(ToString::to_string).collect();
                f.write_str(&guids.join(", "))
            }
            Self::NotGranted { planned, in_force } => write!(
                f,
                "the subnet manager has not granted the port GUID {planned}: {in_force} is in force"
            ),
            Self::Policy { is, planned } => {
                write!(f, "the link state is {is} instead of {planned}")
            }
            Self::Driver(driver) => driver.fmt(f),
            Self::NoRdmaDevice { driver } => {
                write!(f, "the driver {driver} is bound, but has registered no RDMA device")
            }
            Self::HalfBound { driver } => write!(
                f,
                "the driver {driver} is bound, but the VF has no RDMA device, because the probe of the auxiliary RDMA device or the recovery of the VF failed"
            ),
            Self::NoNetdev => write!(f, "ib_ipoib has not created a netdev for the VF"),
            Self::Shows(guid) => guid.fmt(f),
            Self::Unread(VfGuid::Port) => {
                write!(f, "the port GUID (GID 0) cannot be read, so that the VF is not verified")
            }
            Self::Netdev { is, planned } => write!(
                f,
                "the netdev is named {is} instead of {planned}; a netdev is renamed only when it appears. To fix: {ANEW}"
            ),
            Self::RdmaDevice { is, planned } => {
                write!(f, "the RDMA device is named {is} instead of {planned}. To fix: {ANEW}")
            }
            Self::NotRenamed { is, planned } => write!(
                f,
                "udev has not renamed {is} to {planned} and was still processing events; see `journalctl -b -u systemd-udevd`"
            ),
            Self::Unread(which) => {
                write!(f, "the {which} cannot be read, so that the VF is not verified")
            }
        }
    }
}
