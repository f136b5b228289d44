//! What a VF lacks to be as planned. Values that print themselves: in JSON they
//! are their texts.

use std::fmt;

use serde::Serialize;

use super::listed;
use crate::names::{Guid, Policy, Words};

/// What is not as planned at a VF: the first that counts on its way up the ladder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VfLack {
    /// The VF does not exist.
    #[error("the VF does not exist")]
    Absent,
    /// The PF administers other GUIDs for it; at least one.
    #[error("{}", listed(.0))]
    GuidsAtPf(Vec<GuidAtPf>),
    /// The subnet manager has not granted its alias GUID (mlx4).
    #[error("the subnet manager has not granted the port GUID {planned}: {in_force} is in force")]
    NotGranted {
        /// The port GUID of the plan, which the PF has asked for.
        planned: Guid,
        in_force: Guid,
    },
    /// Its link state at the PF.
    #[error("the link state is {} instead of {planned}", .is.map_or("unknown", Words::typed))]
    Policy {
        /// As the PF administers it, if it says so.
        is: Option<Policy>,
        /// The policy of the plan.
        planned: Policy,
    },
    /// The driver bound to it; `None` is no driver.
    #[error("the driver is {} instead of {}", driver(.is.as_ref()), driver(.planned.as_ref()))]
    Driver { is: Option<String>, planned: Option<String> },
    /// Its driver has registered no RDMA device.
    #[error("the driver {driver} is bound, but has registered no RDMA device")]
    NoRdmaDevice {
        /// The driver that is bound to it.
        driver: String,
    },
    /// Its driver is bound, and no RDMA device comes by waiting.
    #[error(
        "the driver {driver} is bound, but the VF has no RDMA device, because the probe of the auxiliary RDMA device or the recovery of the VF failed"
    )]
    HalfBound {
        /// The driver that is bound to it.
        driver: String,
    },
    /// ib_ipoib is loaded and has made no netdev for it.
    #[error("ib_ipoib has not created a netdev for the VF")]
    NoNetdev,
    /// It shows another GUID than the plan's, which its PF has.
    #[error("{0}")]
    Shows(OtherGuid),
    /// A GUID that it shows cannot be read, which proves nothing.
    #[error("the {}{} cannot be read, so that the VF is not verified", .0, if *.0 == VfGuid::Port { " (GID 0)" } else { "" })]
    Unread(VfGuid),
    /// Its netdev or its RDMA device is called otherwise than the configuration says.
    #[error("the {} is named {is} instead of {planned}", .what.text())]
    Name { what: Attribute, is: String, planned: String },
}

impl VfLack {
    /// The same of several VFs, whose plans give each another GUID or name.
    pub fn of_several(&self) -> String {
        match self {
            Self::GuidsAtPf(guids) => {
                let each = guids.iter().map(|GuidAtPf { which, is, .. }| match is {
                    Some(is) if is.is_zero() => format!("the {which} at the PF is 0"),
                    Some(_) => format!("the {which} at the PF is not as planned"),
                    None => format!("the {which} at the PF cannot be read"),
                });
                each.collect::<Vec<_>>().join(", ")
            }
            Self::Shows(OtherGuid { which, .. }) => {
                format!("the {which} of the VF is not as planned")
            }
            Self::Name { what, .. } => format!("the {} is not named as planned", what.text()),
            lack => lack.to_string(),
        }
    }
}

/// What a VF has, by which it may differ from its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Attribute {
    /// The VF itself, which is made anew.
    Vf,
    /// Its node GUID at the PF.
    NodeGuid,
    /// Its port GUID at the PF.
    PortGuid,
    /// The GUID of its second port at the PF.
    Port2Guid,
    /// Its link state at the PF.
    LinkState,
    /// Its driver.
    Driver,
    /// The name of its netdev, which stays as it is.
    Netdev,
    /// The name of its RDMA device, which stays as it is.
    RdmaDevice,
    /// Nothing but that it is bound to its driver once more.
    Binding,
}

impl Attribute {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Vf => "VF",
            Self::NodeGuid => "node GUID",
            Self::PortGuid => "port GUID",
            Self::Port2Guid => "GUID of port 2",
            Self::LinkState => "link state",
            Self::Driver | Self::Binding => "driver",
            Self::Netdev => "netdev",
            Self::RdmaDevice => "RDMA device",
        }
    }
}

/// One of the GUIDs by which a VF is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum VfGuid {
    /// The node GUID, at the PF or of the VF's RDMA device.
    #[strum(to_string = "node GUID")]
    Node,
    /// The port GUID: at the PF, or the low half of GID 0.
    #[strum(to_string = "port GUID")]
    Port,
    /// The same of its second port.
    #[strum(to_string = "GUID of port 2")]
    Port2,
    /// The last 8 bytes of the netdev's address.
    #[strum(to_string = "netdev's GUID")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {which} of the VF is {is} instead of {planned}")]
pub struct OtherGuid {
    /// The GUID that is meant.
    pub which: VfGuid,
    pub is: Guid,
    /// The GUID of the plan.
    pub planned: Guid,
}

fn driver(driver: Option<&String>) -> &str {
    driver.map_or("none", String::as_str)
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
