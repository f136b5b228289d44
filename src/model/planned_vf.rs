//! One VF as `ibprov plan` shows it: what it shall be, and what would change.

use std::fmt;

use serde::Serialize;

use super::hardware::Vf;
use super::pf::Deferred;
use super::screen::{Screen, Tone};
use super::vf_lack::Attribute;
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
    /// That of its second InfiniBand port, if it has one (mlx4).
    pub port2_guid: Option<Guid>,
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

/// One thing that would be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Change {
    /// What would be changed.
    pub what: Attribute,
    /// As it is: a GUID, a link state or a driver; `null` for none or unknown.
    pub from: Option<String>,
    /// As it shall be.
    pub to: Option<String>,
    /// Why, where it is not clear from the two.
    pub reason: Option<String>,
}

impl Change {
    pub fn new<T: fmt::Display>(what: Attribute, from: Option<T>, to: Option<T>) -> Self {
        let text = |value: Option<T>| value.map(|value| value.to_string());
        Self { what, from: text(from), to: text(to), reason: None }
    }

    /// Of a GUID at the PF. The same as it is: it is set once more, since the VF shows another.
    pub fn guid(what: Attribute, from: Option<Guid>, to: Guid) -> Self {
        let why = "the VF shows another: the firmware may have ignored it";
        let reason = (from == Some(to)).then(|| why.to_owned());
        Self { reason, ..Self::new(what, from, Some(to)) }
    }

    /// The VF is made anew.
    pub fn made_anew() -> Self {
        let reason = Some("sriov_numvfs can only be changed via 0".to_owned());
        Self { what: Attribute::Vf, from: None, to: None, reason }
    }

    /// It sets a GUID that the PF does not have yet.
    pub fn brings_guid(&self) -> bool {
        let guids = [Attribute::NodeGuid, Attribute::PortGuid, Attribute::Port2Guid];
        guids.contains(&self.what) && self.from != self.to
    }

    /// What is not as planned, in a phrase; none of what is only set once more.
    fn deviation(&self) -> Option<String> {
        match self.what {
            Attribute::Vf => return Some("to be recreated".to_owned()),
            Attribute::Binding => return self.reason.clone(),
            _ if self.from == self.to => return None,
            _ => {}
        }
        let is_zero = self.from.as_ref().is_some_and(|from| *from == Guid::new(0).to_string());
        let from = if is_zero { "0" } else { self.shown_from() };
        Some(format!("{} {from}, planned {}", self.what.text(), self.shown_to()))
    }

    fn shown_from(&self) -> &str {
        self.from.as_deref().unwrap_or(match self.what {
            Attribute::Driver => "none",
            _ => "unknown",
        })
    }

    fn shown_to(&self) -> &str {
        match self.what {
            Attribute::Binding => "rebound",
            _ => self.to.as_deref().unwrap_or("none"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Attribute::Vf => f.write_str("removed and created again")?,
            what => write!(f, "{} {} -> {}", what.text(), self.shown_from(), self.shown_to())?,
        }
        self.reason.as_ref().map_or(Ok(()), |why| write!(f, " ({why})"))
    }
}

impl PlannedVf {
    /// It is destroyed and created again.
    pub(super) fn is_made_anew(&self) -> bool {
        self.changes.iter().any(|change| change.what == Attribute::Vf)
    }

    /// It is taken from its driver and given back to it.
    pub(super) fn is_bound_again(&self) -> bool {
        self.changes.iter().any(|change| change.what == Attribute::Binding)
    }

    /// What is not as planned of one that is there, in phrases; of one that is in use, whose
    /// changes are no plan, by what is `seen`.
    pub(super) fn deviations(&self, seen: &Vf) -> String {
        // Who is bound again to read a GUID lacks that GUID.
        let brings_guid = self.changes.iter().any(Change::brings_guid);
        let is_told = |c: &&Change| c.what != Attribute::Binding || !brings_guid;
        let told = self.changes.iter().filter(is_told);
        let mut all: Vec<String> = told.filter_map(Change::deviation).collect();
        if let Some(wanted) = self.wanted.as_ref().filter(|_| self.changes.is_empty()) {
            let seen = [
                Change::guid(Attribute::NodeGuid, seen.node_guid, wanted.node_guid),
                Change::guid(Attribute::PortGuid, seen.port_guid, wanted.port_guid),
                Change::new(Attribute::Port2Guid, seen.port2_guid, wanted.port2_guid),
                Change::new(Attribute::LinkState, seen.policy, Some(wanted.policy)),
            ];
            all.extend(seen.iter().filter_map(Change::deviation));
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
            port2_guid,
            policy,
            driver,
            owner,
            guids_from,
            netdev_name,
            rdma_name,
        } = self;
        let port2 = port2_guid.map(|guid| format!(", {guid}")).unwrap_or_default();
        let mut text = format!(
            "node GUID {node_guid}  port GUID {port_guid}{port2} ({guids_from})  link state {policy}  driver {driver}"
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
