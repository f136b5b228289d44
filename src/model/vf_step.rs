//! What is done to a PF and its VFs, and what is left undone.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::{Use, VfLack, common::as_text, uses::told};
use crate::names::{Guid, PciAddress, Policy, PortNumber, RdmaName, VfIndex, grouped, vf_ranges};

/// One change at a PF or a VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum VfStep {
    /// New VFs get no driver by themselves.
    AutoprobeOff,
    /// The number of VFs; from one number to another the way is by none.
    Count { from: u16, to: u16 },
    /// Unbind a VF from its driver.
    Unbind {
        /// The VF that it is done to.
        vf: VfIndex,
        driver: String,
    },
    /// Set its node GUID at the PF.
    NodeGuid {
        /// The VF that it is done to.
        vf: VfIndex,
        /// As it is, if it can be read.
        from: Option<Guid>,
        to: Guid,
    },
    /// Set the GUID of a port of it at the PF.
    PortGuid {
        /// The VF that it is done to.
        vf: VfIndex,
        /// Which of its ports, as the VF counts them.
        port: PortNumber,
        /// As it is, if it can be read.
        from: Option<Guid>,
        to: Guid,
    },
    /// Set its link state at the PF.
    #[serde(rename = "link-state")]
    Policy {
        /// The VF that it is done to.
        vf: VfIndex,
        /// As it is, if it can be read.
        from: Option<Policy>,
        to: Policy,
    },
    /// Bind a VF to a driver.
    Bind {
        /// The VF that it is done to.
        vf: VfIndex,
        /// The driver it gets.
        driver: String,
        /// The VF that has to have its devices before, so that the kernel's numbers are
        /// in the order of the VFs.
        after: Option<VfIndex>,
        /// What its RDMA device is called then; `None`: as it comes.
        rdma: Option<RdmaName>,
    },
    /// Put back `driver_override` as it was before a run that was cut short.
    RestoreOverride {
        pci: PciAddress,
        /// As it was; empty: none.
        to: String,
    },
    /// New VFs get drivers by themselves, or not, as it was before.
    RestoreAutoprobe { on: bool },
}

/// What can be done together, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Automatic probing off.
    Prepare,
    /// The number of VFs.
    Count,
    /// VFs taken from their drivers.
    Unbind,
    /// GUIDs and policies at the PF.
    Administer,
    /// VFs given to their drivers.
    Bind,
    /// What was changed for the time of the work, put back.
    Restore,
}

impl VfStep {
    /// When it is done.
    pub const fn stage(&self) -> Stage {
        match self {
            Self::AutoprobeOff => Stage::Prepare,
            Self::Count { .. } => Stage::Count,
            Self::Unbind { .. } => Stage::Unbind,
            Self::NodeGuid { .. } | Self::PortGuid { .. } | Self::Policy { .. } => {
                Stage::Administer
            }
            Self::Bind { .. } => Stage::Bind,
            Self::RestoreOverride { .. } | Self::RestoreAutoprobe { .. } => Stage::Restore,
        }
    }

    /// True if `other` is the same change, whatever it starts from.
    pub fn is_same(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.vf() == other.vf()
            && match (self, other) {
                (Self::RestoreOverride { pci, .. }, Self::RestoreOverride { pci: b, .. }) => {
                    pci == b
                }
                (Self::PortGuid { port, .. }, Self::PortGuid { port: b, .. }) => port == b,
                _ => true,
            }
    }

    /// It sets what is said to be set already.
    pub fn is_repeated(&self) -> bool {
        match self {
            Self::NodeGuid { from, to, .. } | Self::PortGuid { from, to, .. } => *from == Some(*to),
            _ => false,
        }
    }

    /// True if it does to its VF what `other` does to another.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unbind { driver: a, .. }, Self::Unbind { driver: b, .. })
            | (Self::Bind { driver: a, .. }, Self::Bind { driver: b, .. }) => a == b,
            (Self::Policy { to: a, .. }, Self::Policy { to: b, .. }) => a == b,
            (Self::NodeGuid { .. }, Self::NodeGuid { .. }) => true,
            (Self::PortGuid { port: a, .. }, Self::PortGuid { port: b, .. }) => a == b,
            _ => false,
        }
    }

    /// The VF it is about.
    pub const fn vf(&self) -> Option<VfIndex> {
        match self {
            Self::Unbind { vf, .. }
            | Self::NodeGuid { vf, .. }
            | Self::PortGuid { vf, .. }
            | Self::Policy { vf, .. }
            | Self::Bind { vf, .. } => Some(*vf),
            Self::AutoprobeOff
            | Self::Count { .. }
            | Self::RestoreOverride { .. }
            | Self::RestoreAutoprobe { .. } => None,
        }
    }
}

impl fmt::Display for VfStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn was<T: fmt::Display>(from: Option<&T>) -> String {
            from.map_or_else(String::new, |v| format!(" (was {v})"))
        }
        match self {
            Self::AutoprobeOff => write!(f, "disable sriov_drivers_autoprobe"),
            Self::Count { from, to } => write!(f, "change the number of VFs from {from} to {to}"),
            Self::Unbind { vf, driver } => write!(f, "unbind VF {vf} from {driver}"),
            Self::NodeGuid { vf, from, to } => {
                write!(f, "set node GUID of VF {vf} to {to}{}", was(from.as_ref()))
            }
            Self::PortGuid { vf, port: PortNumber::FIRST, from, to } => {
                write!(f, "set port GUID of VF {vf} to {to}{}", was(from.as_ref()))
            }
            Self::PortGuid { vf, port, from, to } => {
                write!(f, "set GUID of port {port} of VF {vf} to {to}{}", was(from.as_ref()))
            }
            Self::Policy { vf, from, to } => {
                write!(f, "set link state of VF {vf} to {to}{}", was(from.as_ref()))
            }
            Self::Bind { vf, driver, after, rdma } => {
                write!(f, "bind VF {vf} to {driver}")?;
                if let Some(name) = rdma {
                    write!(f, " as {name}")?;
                }
                after.map_or(Ok(()), |after| write!(f, " after VF {after}"))
            }
            Self::RestoreOverride { pci, to } if to.is_empty() => {
                write!(f, "clear driver_override of {pci}, left by an interrupted run")
            }
            Self::RestoreOverride { pci, to } => {
                write!(f, "set driver_override of {pci} back to {to}")
            }
            Self::RestoreAutoprobe { on } => {
                write!(f, "restore sriov_drivers_autoprobe to {}", u8::from(*on))
            }
        }
    }
}

/// `steps` in their order, with those that are alike and belong to one stage as one line.
pub fn together(steps: &[VfStep]) -> Vec<String> {
    let mut groups: Vec<Vec<&VfStep>> = Vec::new();
    for step in steps {
        match groups.iter_mut().find(|group| group.first().is_some_and(|g| step.is_like(g))) {
            Some(group) => group.push(step),
            None => groups.push(vec![step]),
        }
    }
    groups.iter().map(|group| line(group)).collect()
}

/// One line for steps that are alike.
fn line(group: &[&VfStep]) -> String {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return String::new() };
    let vfs = vf_ranges(group.iter().filter_map(|step| step.vf()));
    match (first, last) {
        _ if group.len() == 1 => first.to_string(),
        (VfStep::Unbind { driver, .. }, _) => format!("unbind {vfs} from {driver}, in parallel"),
        (VfStep::NodeGuid { to, .. }, VfStep::NodeGuid { to: end, .. }) => {
            format!("set the node GUIDs of {vfs}: {to} to {end}")
        }
        (VfStep::PortGuid { port, to, .. }, VfStep::PortGuid { to: end, .. }) => {
            let what = match *port {
                PortNumber::FIRST => "the port GUIDs".to_owned(),
                port => format!("the GUIDs of port {port}"),
            };
            format!("set {what} of {vfs}: {to} to {end}")
        }
        (VfStep::Policy { to, .. }, _) => format!("set link state of {vfs} to {to}"),
        (VfStep::Bind { driver, .. }, VfStep::Bind { after, .. }) => {
            let way = if after.is_some() { "one after the other" } else { "in parallel" };
            format!("bind {vfs} to {driver}, {way}")
        }
        _ => {
            let texts: Vec<String> = group.iter().map(ToString::to_string).collect();
            texts.join("; ")
        }
    }
}

/// Something that is wanted and would take from somebody what he uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Deferred {
    /// The number of VFs.
    Count {
        from: u16,
        to: u16,
        /// The VFs in use.
        uses: BTreeMap<VfIndex, Vec<Use>>,
    },
    /// A VF's GUID, driver or policy.
    Vf {
        /// The VF that is left as it is.
        vf: VfIndex,
        /// What is not as it shall be; in JSON its text, `reason`.
        #[serde(rename = "reason", serialize_with = "as_text::one")]
        #[cfg_attr(test, schemars(with = "String"))]
        what: VfLack,
        uses: Vec<Use>,
    },
}

impl Deferred {
    /// The VF that it is about, if it is about one.
    pub const fn vf(&self) -> Option<VfIndex> {
        match self {
            Self::Count { .. } => None,
            Self::Vf { vf, .. } => Some(*vf),
        }
    }
}

/// `deferred`, VFs of which the same is said in one line.
pub fn left_alone<'a>(deferred: impl IntoIterator<Item = &'a Deferred>) -> Vec<String> {
    let said = |deferred: &&'a Deferred| match deferred {
        Deferred::Vf { what, uses, .. } => Some((what.of_several(), uses)),
        Deferred::Count { .. } => None,
    };
    let line = |(said, all): (Option<(String, &Vec<Use>)>, Vec<&Deferred>)| match said {
        Some((what, uses)) if all.len() > 1 => {
            let vfs = vf_ranges(all.iter().filter_map(|deferred| deferred.vf()));
            vec![format!("{vfs} are left alone: {what}; {}", told("each", uses))]
        }
        _ => all.iter().map(ToString::to_string).collect(),
    };
    grouped(deferred, said).into_iter().flat_map(line).collect()
}

impl fmt::Display for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { from, to, uses } => {
                write!(f, "the number of VFs stays {from} instead of {to}")?;
                for (vf, uses) in uses {
                    write!(f, "; {}", told(&format!("VF {vf}"), uses))?;
                }
                Ok(())
            }
            Self::Vf { vf, what, uses } => {
                write!(f, "VF {vf} is left alone: {what}; {}", told("it", uses))
            }
        }
    }
}
