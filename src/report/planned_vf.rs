//! One VF as `ibprov plan` shows it: what it shall be, and what would change.

use std::fmt;

use serde::{Serialize, Serializer};

use super::hardware::Vf;
use super::pf::{Deferred, OtherGuid};
use super::screen::{Screen, Tone};
use crate::names::{Guid, IfName, Policy, RdmaName, VfDriver, VfIndex, VfOwner};

/// The plan of one VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlannedVf {
    /// Which VF.
    pub index: VfIndex,
    /// What would be done.
    pub action: Action,
    /// What would be changed, or is deferred.
    #[cfg_attr(test, schemars(with = "Vec<ChangeJson>"))]
    pub changes: Vec<Change>,
    /// Why it is left as it is, and who uses it; in JSON a text, `reason`.
    #[serde(rename = "reason", serialize_with = "super::common::as_text::option")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub deferred: Option<Deferred>,
    /// What it shall be; `null` where it would be removed.
    pub wanted: Option<PlannedAs>,
}

/// What one VF shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlannedAs {
    /// Its node GUID.
    pub node_guid: Guid,
    /// Its port GUID.
    pub port_guid: Guid,
    /// Its link state.
    #[serde(rename = "link_state")]
    pub policy: Policy,
    /// Who drives it.
    pub driver: VfDriver,
    /// To whom its GUIDs and its link state belong once they are set.
    pub owner: VfOwner,
    /// What gives it its GUIDs: `template`, `list`, `range`, `offset`,
    /// `[[pf.vf]]`, or `pin`, which holds against all of them.
    pub guids_from: String,
    /// What its netdev is called; `null`: as it comes.
    pub netdev_name: Option<IfName>,
    /// What its RDMA device is called; `null`: as it comes.
    pub rdma_name: Option<RdmaName>,
}

/// What would be done with a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Nothing: it is as wanted.
    Keep,
    /// It would be created.
    Create,
    /// Something about it would be changed.
    Change,
    /// It would be destroyed.
    Remove,
    /// Something is not as wanted and stays so: it is in use.
    Defer,
    /// Something is not as wanted, and would not be whatever is done.
    Refuse,
    /// Nothing can be done at its PF.
    Block,
}

/// One thing that would be changed. In JSON `what`, `from`, `to` and, where it is not clear
/// from these, `reason`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The VF is made anew, since sriov_numvfs can only be changed via 0.
    MadeAnew,
    /// Its node GUID at the PF.
    NodeGuid {
        /// As it is, if it can be read.
        from: Option<Guid>,
        /// As it shall be. The same as it is: it is set once more, since the VF
        /// shows another.
        to: Guid,
    },
    /// Its port GUID at the PF, in the same way.
    PortGuid {
        /// As it is, if it can be read.
        from: Option<Guid>,
        /// As it shall be.
        to: Guid,
    },
    /// Its link state at the PF.
    Policy {
        /// As it is, if it can be read.
        from: Option<Policy>,
        /// As it shall be.
        to: Policy,
    },
    /// The name of its netdev, which it keeps.
    Netdev {
        /// As it is.
        from: IfName,
        /// As it shall be.
        to: IfName,
    },
    /// The name of its RDMA device, which it keeps.
    RdmaDevice {
        /// As it is.
        from: RdmaName,
        /// As it shall be.
        to: RdmaName,
    },
    /// Its driver; `None` is no driver.
    Driver {
        /// The one bound to it.
        from: Option<String>,
        /// The one that it shall have.
        to: Option<String>,
    },
    /// It is bound to its driver once more, which then reads the right GUIDs.
    BoundAgain {
        /// The driver that it is taken from and given back to.
        driver: String,
        /// What for.
        why: Rebind,
    },
}

/// Why a VF is bound once more to the driver that it has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rebind {
    /// Its GUIDs are set, which it reads when it is bound.
    #[error("a VF reads its GUIDs when it is bound")]
    Guids,
    /// It shows a GUID that is not the plan's.
    #[error("{0}")]
    Shows(OtherGuid),
    /// It has no RDMA device, and none comes by waiting.
    #[error("the VF has no RDMA device")]
    HalfBound,
    /// It has no netdev, and none comes by waiting.
    #[error("ib_ipoib has not created a netdev for the VF")]
    NoNetdev,
}

impl Change {
    /// It sets a GUID that the PF does not have yet.
    pub fn brings_guid(&self) -> bool {
        match self {
            Self::NodeGuid { from, to } | Self::PortGuid { from, to } => *from != Some(*to),
            _ => false,
        }
    }

    /// What is not as planned, in a phrase; none of what is only set or bound once more.
    fn deviation(&self) -> Option<String> {
        let zero = |guid: &Option<Guid>| guid.is_some_and(Guid::is_zero);
        let told = self.told();
        let from = match self {
            Self::MadeAnew => return Some("to be recreated".to_owned()),
            Self::BoundAgain { why: Rebind::Guids, .. } => return None,
            Self::BoundAgain { why, .. } => return Some(why.to_string()),
            Self::NodeGuid { .. } | Self::PortGuid { .. } if !self.brings_guid() => return None,
            Self::NodeGuid { from, .. } | Self::PortGuid { from, .. } if zero(from) => "0",
            _ => told.shown_from(),
        };
        Some(format!("{} {from}, planned {}", told.what.text(), told.shown_to()))
    }

    /// Why, where it is not clear from the two.
    fn why(&self) -> Option<String> {
        match self {
            Self::MadeAnew => Some("sriov_numvfs can only be changed via 0".to_owned()),
            Self::NodeGuid { .. } | Self::PortGuid { .. } => (!self.brings_guid())
                .then(|| "the VF shows another: the firmware may have ignored it".to_owned()),
            Self::Netdev { .. } | Self::RdmaDevice { .. } => {
                Some("a VF gets its names when it is bound".to_owned())
            }
            Self::Policy { .. } | Self::Driver { .. } => None,
            Self::BoundAgain { why, .. } => Some(why.to_string()),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.told();
        match told.what {
            Changed::Vf => f.write_str("removed and created again")?,
            what => write!(f, "{} {} -> {}", what.text(), told.shown_from(), told.shown_to())?,
        }
        told.reason.map_or(Ok(()), |why| write!(f, " ({why})"))
    }
}

/// A [`Change`] as JSON has it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ChangeJson {
    /// What would be changed.
    what: Changed,
    /// As it is: a GUID, a link state or a driver; `null` for none or unknown.
    from: Option<String>,
    /// As it shall be.
    to: Option<String>,
    /// Why, where it is not clear from the two.
    reason: Option<String>,
}

/// What is changed of a VF.
#[derive(Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum Changed {
    /// The VF itself, which is made anew.
    Vf,
    /// Its node GUID at the PF.
    NodeGuid,
    /// Its port GUID at the PF.
    PortGuid,
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

impl Changed {
    const fn text(self) -> &'static str {
        match self {
            Self::Vf => "VF",
            Self::NodeGuid => "node GUID",
            Self::PortGuid => "port GUID",
            Self::LinkState => "link state",
            Self::Driver | Self::Binding => "driver",
            Self::Netdev => "netdev",
            Self::RdmaDevice => "RDMA device",
        }
    }
}

impl ChangeJson {
    fn shown_from(&self) -> &str {
        self.from.as_deref().unwrap_or(match self.what {
            Changed::Driver => "none",
            _ => "unknown",
        })
    }

    fn shown_to(&self) -> &str {
        match self.what {
            Changed::Binding => "rebound",
            _ => self.to.as_deref().unwrap_or("none"),
        }
    }
}

impl Change {
    fn told(&self) -> ChangeJson {
        fn text<T: fmt::Display>(value: Option<&T>) -> Option<String> {
            value.map(ToString::to_string)
        }
        let (what, from, to) = match self {
            Self::MadeAnew => (Changed::Vf, None, None),
            Self::NodeGuid { from, to } => (Changed::NodeGuid, text(from.as_ref()), text(Some(to))),
            Self::PortGuid { from, to } => (Changed::PortGuid, text(from.as_ref()), text(Some(to))),
            Self::Policy { from, to } => (Changed::LinkState, text(from.as_ref()), text(Some(to))),
            Self::Driver { from, to } => (Changed::Driver, from.clone(), to.clone()),
            Self::Netdev { from, to } => (Changed::Netdev, text(Some(from)), text(Some(to))),
            Self::RdmaDevice { from, to } => {
                (Changed::RdmaDevice, text(Some(from)), text(Some(to)))
            }
            Self::BoundAgain { driver, .. } => {
                (Changed::Binding, Some(driver.clone()), Some(driver.clone()))
            }
        };
        ChangeJson { what, from, to, reason: self.why() }
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.told().serialize(s)
    }
}

impl PlannedVf {
    /// It is destroyed and created again.
    pub(super) fn is_made_anew(&self) -> bool {
        self.changes.contains(&Change::MadeAnew)
    }

    /// It is taken from its driver and given back to it.
    pub(super) fn is_bound_again(&self) -> bool {
        self.changes.iter().any(|change| matches!(change, Change::BoundAgain { .. }))
    }

    /// What is not as planned of one that is there, in phrases; of one that is in use, whose
    /// changes are no plan, by what is `seen`.
    pub(super) fn deviations(&self, seen: &Vf) -> String {
        let mut all: Vec<String> = self.changes.iter().filter_map(Change::deviation).collect();
        if let Some(wanted) = self.wanted.as_ref().filter(|_| self.changes.is_empty()) {
            let (node, port) = (wanted.node_guid, wanted.port_guid);
            let guids = [
                Change::NodeGuid { from: seen.node_guid, to: node },
                Change::PortGuid { from: seen.port_guid, to: port },
            ];
            all.extend(guids.iter().filter_map(Change::deviation));
            let link_state = Change::Policy { from: seen.policy, to: wanted.policy };
            all.extend(link_state.deviation().filter(|_| seen.policy != Some(wanted.policy)));
        }
        if all.is_empty() { "not as planned".to_owned() } else { all.join("; ") }
    }

    /// Its lines in the text; `all` also where it is kept as it is, or created again. That
    /// it is removed is told of all such VFs together.
    pub(super) fn lines(&self, all: bool, screen: Screen) -> Vec<String> {
        let index = self.index;
        let (good, warned, bad) = (
            screen.paint(Tone::Good, "+"),
            |mark| screen.paint(Tone::Warning, mark),
            screen.paint(Tone::Bad, "!"),
        );
        let whole = |mark: &str, wanted: &PlannedAs| {
            vec![format!("  {mark} VF {index}  {}", wanted.text())]
        };
        match (self.action, &self.wanted) {
            (Action::Keep, Some(wanted)) if all => whole("=", wanted),
            (Action::Keep | Action::Remove, _) => Vec::new(),
            (Action::Change, Some(_)) if self.is_made_anew() && !all => Vec::new(),
            (Action::Change, Some(wanted)) if self.is_made_anew() => whole(&good, wanted),
            (Action::Block, Some(wanted)) => whole(&bad, wanted),
            (Action::Create, Some(wanted)) => whole(&good, wanted),
            (Action::Block | Action::Defer, _) if self.changes.is_empty() => {
                let what = self.deferred.as_ref().map(ToString::to_string);
                let what = what.unwrap_or_else(|| format!("VF {index}"));
                vec![format!("  {} {what}", warned("!"))]
            }
            (
                Action::Create | Action::Change | Action::Defer | Action::Refuse | Action::Block,
                wanted,
            ) => {
                let from = wanted.as_ref().map_or("", |w| &w.guids_from);
                let line = |(at, change): (usize, &Change)| {
                    let head = if at == 0 { format!("VF {index}") } else { String::new() };
                    let mark = match (at, self.action) {
                        (0, Action::Refuse) => bad.clone(),
                        (0, _) => warned("~"),
                        _ => " ".to_owned(),
                    };
                    let why =
                        if change.brings_guid() { format!(" ({from})") } else { String::new() };
                    format!("  {mark} {head:<6} {change}{why}")
                };
                let deferred =
                    self.deferred.iter().map(|deferred| format!("           {deferred}"));
                self.changes.iter().enumerate().map(line).chain(deferred).collect()
            }
        }
    }
}

impl PlannedAs {
    fn text(&self) -> String {
        let Self {
            node_guid,
            port_guid,
            policy,
            driver,
            owner,
            guids_from,
            netdev_name,
            rdma_name,
        } = self;
        let mut text = format!(
            "node GUID {node_guid}  port GUID {port_guid} ({guids_from})  link state {policy}  driver {driver}"
        );
        if *owner == VfOwner::Cni {
            text.push_str("  from then on the CNI's");
        }
        if let Some(name) = netdev_name {
            text.push_str(&format!("  netdev {name}"));
        }
        if let Some(name) = rdma_name {
            text.push_str(&format!("  RDMA device {name}"));
        }
        text
    }
}
