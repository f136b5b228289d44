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
    #[error("the {which} of the VF is {is} instead of {planned}")]
    Shows { which: Attribute, is: Guid, planned: Guid },
    /// A GUID that it shows cannot be read, which proves nothing.
    #[error("the {}{} cannot be read, so that the VF is not verified", .0, if *.0 == Attribute::PortGuid { " (GID 0)" } else { "" })]
    Unread(Attribute),
    /// Its netdev or its RDMA device is called otherwise than the configuration says.
    #[error("the {what} is named {is} instead of {planned}")]
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
            Self::Shows { which, .. } => format!("the {which} of the VF is not as planned"),
            Self::Name { what, .. } => format!("the {what} is not named as planned"),
            lack => lack.to_string(),
        }
    }
}

/// What a VF has, by which it may differ from its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Attribute {
    /// The VF itself, which is made anew.
    #[strum(to_string = "VF")]
    Vf,
    /// Its node GUID at the PF.
    #[strum(to_string = "node GUID")]
    NodeGuid,
    /// Its port GUID at the PF.
    #[strum(to_string = "port GUID")]
    PortGuid,
    /// The GUID of its second port at the PF.
    #[strum(to_string = "GUID of port 2")]
    Port2Guid,
    /// Its link state at the PF.
    #[strum(to_string = "link state")]
    LinkState,
    /// Its driver.
    #[strum(to_string = "driver")]
    Driver,
    /// The name of its netdev, which stays as it is.
    #[strum(to_string = "netdev")]
    Netdev,
    /// The last 8 bytes of the address of its netdev, which are no change of a plan.
    #[strum(to_string = "netdev's GUID")]
    #[serde(skip)]
    NetdevGuid,
    /// The name of its RDMA device, which stays as it is.
    #[strum(to_string = "RDMA device")]
    RdmaDevice,
    /// Nothing but that it is bound to its driver once more.
    #[strum(to_string = "driver")]
    Binding,
}

/// A GUID as the PF administers it, other than planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuidAtPf {
    pub which: Attribute,
    /// As it is, if it can be read.
    pub is: Option<Guid>,
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
