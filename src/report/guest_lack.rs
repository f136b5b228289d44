//! What keeps a guest from being started on a device. Values that print
//! themselves: in JSON they are their texts.

use std::fmt;

use super::VfLack;
use super::vf_lack::VfGuid;
use crate::names::PciAddress;

/// What is not right about a device that a guest needs: the first that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestLack {
    /// There is no PCI function of that address; there may be one later.
    NoFunction,
    /// It cannot be told whether the function is an InfiniBand VF, and why.
    Unclear(String),
    /// The VF's PF does not exist.
    NoPf(PciAddress),
    /// The VF's PF has no driver.
    NoPfDriver(PciAddress),
    /// The plan of the VF's PF cannot be made, and why.
    Plan(String),
    /// The VF's link state at its PF is Down, and no plan wants that.
    PolicyDown,
    /// Its PF administers no GUIDs for the VF; at least one.
    Guids(Vec<GuidLack>),
    /// No driver is bound to the VF, and no plan wants that.
    NoDriver,
    /// The VF is not as its plan, or where there is none its PF, has it.
    Vf(VfLack),
}

/// A GUID that a VF has to have at its PF although no plan gives it one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuidLack {
    /// It is zero.
    Unset(VfGuid),
    Unread(VfGuid),
}

impl fmt::Display for GuidLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset(which) => write!(f, "the {which} is not set"),
            Self::Unread(which) => write!(f, "the {which} at the PF cannot be read"),
        }
    }
}

impl fmt::Display for GuestLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFunction => f.write_str(
                "no PCI function has this address; the guest is started when one appears",
            ),
            Self::Unclear(why) | Self::Plan(why) => f.write_str(why),
            Self::NoPf(pf) => write!(f, "the PF {pf} is absent"),
            Self::NoPfDriver(pf) => write!(f, "no driver is bound to the PF {pf}"),
            Self::PolicyDown => f.write_str("the link state is set to down"),
            Self::Guids(guids) => {
                let guids: Vec<String> = guids.iter().map(ToString::to_string).collect();
                f.write_str(&guids.join(", "))
            }
            Self::NoDriver => f.write_str(
                "no driver is bound to the VF: the probe has failed, or the VF was not bound",
            ),
            Self::Vf(lack) => lack.fmt(f),
        }
    }
}
