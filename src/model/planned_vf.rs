//! One VF as `ibprov plan` shows it: what it shall be, and what would change.

use std::fmt;

use serde::Serialize;

use super::{Deferred, hardware::VfStatus, vf_lack::Attribute};
use crate::names::{Binding, Guid, PciAddress, Policy, VfDriver, VfIndex, VfNames, VfOwner};

/// The plan of one VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlannedVf {
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
    pub wanted: Option<WantedVf>,
}

/// What one PF's VFs shall be: the GUID plan of one PF, made from the configuration, the pins and
/// the host's identity. VF `i` is `vfs[i]`; their number is wanted too. It holds no template and
/// no name that could mean something else tomorrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedPf {
    /// The PF as it was found on this host.
    pub pf: PciAddress,
    /// Its VFs, from VF 0 on, without a gap; empty: no VFs are wanted.
    pub vfs: Vec<WantedVf>,
    pub binding: Binding,
}

/// What one VF shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WantedVf {
    #[serde(skip)]
    pub index: VfIndex,
    pub node_guid: Guid,
    pub port_guid: Guid,
    /// That of its second InfiniBand port, if it has one (mlx4).
    pub port2_guid: Option<Guid>,
    /// Its link state.
    #[serde(rename = "link_state")]
    pub policy: Policy,
    /// The configuration names that policy for this very VF, so it is set whoever
    /// uses the VF.
    #[serde(skip)]
    pub policy_named: bool,
    /// Who drives it.
    pub driver: VfDriver,
    /// To whom its GUIDs and its link state belong once they are set.
    pub owner: VfOwner,
    /// What gives it its GUIDs: `template`, `list`, `range`, `offset`,
    /// `[[pf.vf]]`, or `pin`, which holds against all of them.
    pub guids_from: String,
    #[serde(flatten)]
    pub names: VfNames,
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

    /// What is not as planned, in a phrase that is true `of_several` VFs, where that is asked
    /// for; none of what is only set once more.
    fn deviation(&self, of_several: bool) -> Option<String> {
        let what = self.what;
        let is_zero = self.from.as_ref().is_some_and(|from| *from == Guid::new(0).to_string());
        let is_own = !matches!(self.what, Attribute::LinkState | Attribute::Driver);
        match self.what {
            Attribute::Vf => Some("to be recreated".to_owned()),
            Attribute::Binding => self.reason.clone(),
            _ if self.from == self.to => None,
            _ if of_several && is_zero => Some(format!("{what} 0")),
            Attribute::Netdev | Attribute::RdmaDevice if of_several => {
                Some(format!("{what} not named as planned"))
            }
            _ if of_several && is_own => Some(format!("{what} not as planned")),
            _ => {
                let from = if is_zero { "0" } else { self.shown_from() };
                Some(format!("{what} {from} (planned {})", self.shown_to()))
            }
        }
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
            what => write!(f, "{what} {} -> {}", self.shown_from(), self.shown_to())?,
        }
        self.reason.as_ref().map_or(Ok(()), |why| write!(f, " ({why})"))
    }
}

impl PlannedVf {
    /// It is destroyed and created again.
    pub fn is_made_anew(&self) -> bool {
        self.changes.iter().any(|change| change.what == Attribute::Vf)
    }

    /// It is taken from its driver and given back to it.
    pub fn is_bound_again(&self) -> bool {
        self.changes.iter().any(|change| change.what == Attribute::Binding)
    }

    /// What is not as planned of one that is there, in phrases that are true `of_several`, where
    /// that is asked for; of one that is in use, whose changes are no plan, by what is `seen`.
    pub fn deviations(&self, seen: &VfStatus, of_several: bool) -> String {
        // Who is bound again to read a GUID lacks that GUID.
        let brings_guid = self.changes.iter().any(Change::brings_guid);
        let is_told = |c: &&Change| c.what != Attribute::Binding || !brings_guid;
        let told = self.changes.iter().filter(is_told);
        let mut all: Vec<String> = told.filter_map(|change| change.deviation(of_several)).collect();
        if let Some(wanted) = self.wanted.as_ref().filter(|_| self.changes.is_empty()) {
            let seen = [
                Change::guid(Attribute::NodeGuid, seen.node_guid, wanted.node_guid),
                Change::guid(Attribute::PortGuid, seen.port_guid, wanted.port_guid),
                Change::new(Attribute::Port2Guid, seen.port2_guid, wanted.port2_guid),
                Change::new(Attribute::LinkState, seen.policy, Some(wanted.policy)),
            ];
            all.extend(seen.iter().filter_map(|change| change.deviation(of_several)));
        }
        if all.is_empty() { "not as planned".to_owned() } else { all.join(", ") }
    }
}
