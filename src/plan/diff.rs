//! What would change at a PF's VFs, from what was observed to what is wanted.
//!
//! For showing; in which order it is done is another plan's matter.

use serde::Serialize;

use super::wanted::{VfDriver, WantedPf, WantedVf};
use crate::names::{Guid, VfIndex};

/// A VF as it is, as far as it can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenVf {
    /// Which.
    pub index: u32,
    /// Its node GUID as the PF administers it.
    pub node_guid: Option<Guid>,
    /// Its port GUID as the PF administers it.
    pub port_guid: Option<Guid>,
    /// `Follow`, `Up` or `Down`.
    pub policy: Option<String>,
    /// The driver bound to it.
    pub driver: Option<String>,
    /// The node GUID that its own RDMA device shows.
    pub own_node_guid: Option<Guid>,
    /// The port GUID that its own RDMA device shows.
    pub own_port_guid: Option<Guid>,
}

/// What would become of one VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VfDiff {
    /// Which VF.
    pub index: u32,
    /// What would be done.
    pub action: Action,
    /// What differs, in words; empty for [`Action::Keep`].
    pub changes: Vec<Change>,
}

/// What would be done with a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
}

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// `node GUID`, `port GUID`, `policy`, `driver` ...
    pub what: &'static str,
    /// As it is.
    pub from: String,
    /// As it shall be.
    pub to: String,
    /// Why, where it is not clear from the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
}

/// Drivers that a VF for a virtual machine may have: libvirt takes the vendor's
/// where it knows of it.
const FOR_GUESTS: [&str; 2] = ["vfio-pci", "mlx5_vfio_pci"];

/// Drivers of others that are not the host's own either.
const KEEPERS: [&str; 2] = ["pci-stub", "xen-pciback"];

/// What would change; `seen` are the VFs that are there.
#[must_use]
pub fn diff(wanted: &WantedPf, seen: &[SeenVf]) -> Vec<VfDiff> {
    // From one number to another the way is by none (sriov_numvfs_store(),
    // drivers/pci/iov.c): all are made anew.
    let anew = seen.len() != wanted.vfs.len();
    let mut diffs: Vec<VfDiff> = wanted
        .vfs
        .iter()
        .map(|vf| {
            let there = seen.iter().find(|s| s.index == u32::from(vf.index.get()));
            one(vf, there, anew)
        })
        .collect();
    let surplus = seen.iter().filter(|s| !wanted.vfs.iter().any(|vf| is(vf.index, s)));
    diffs.extend(surplus.map(|s| VfDiff {
        index: s.index,
        action: Action::Remove,
        changes: Vec::new(),
    }));
    diffs.sort_by_key(|d| d.index);
    diffs
}

fn is(index: VfIndex, seen: &SeenVf) -> bool {
    u32::from(index.get()) == seen.index
}

fn one(wanted: &WantedVf, seen: Option<&SeenVf>, anew: bool) -> VfDiff {
    let index = u32::from(wanted.index.get());
    let Some(seen) = seen else {
        let absent = |what, to: String| Change { what, from: "absent".to_owned(), to, why: None };
        let changes = vec![
            absent("node GUID", wanted.node_guid.to_string()),
            absent("port GUID", wanted.port_guid.to_string()),
            absent("policy", wanted.policy.to_string()),
            absent("driver", driver_word(wanted.driver)),
        ];
        return VfDiff { index, action: Action::Create, changes };
    };
    let mut changes = Vec::new();
    let guids = [
        ("node GUID", wanted.node_guid, seen.node_guid, seen.own_node_guid),
        ("port GUID", wanted.port_guid, seen.port_guid, seen.own_port_guid),
    ];
    for (what, wanted, administered, own) in guids {
        // What the PF does not tell, the VF itself may.
        let known = administered.or(own);
        if known != Some(wanted) {
            let from = known.map_or_else(|| "unknown".to_owned(), |guid| guid.to_string());
            changes.push(Change { what, from, to: wanted.to_string(), why: None });
        } else if let Some(own) = own.filter(|own| *own != wanted) {
            changes.push(Change {
                what,
                from: own.to_string(),
                to: wanted.to_string(),
                why: Some("the PF has it, and the VF was bound before: bind it again"),
            });
        }
    }
    let policy = seen.policy.as_deref().map(str::to_lowercase);
    if policy.as_deref() != Some(&wanted.policy.to_string()) {
        let from = policy.unwrap_or_else(|| "unknown".to_owned());
        changes.push(Change { what: "policy", from, to: wanted.policy.to_string(), why: None });
    }
    let bound = seen.driver.as_deref();
    let right = match wanted.driver {
        VfDriver::Default => {
            bound.is_some_and(|d| !FOR_GUESTS.contains(&d) && !KEEPERS.contains(&d))
        }
        VfDriver::VfioPci => bound.is_some_and(|d| FOR_GUESTS.contains(&d)),
        VfDriver::None => bound.is_none(),
    };
    if !right {
        let from = bound.unwrap_or("none").to_owned();
        changes.push(Change { what: "driver", from, to: driver_word(wanted.driver), why: None });
    }
    if anew {
        changes.push(Change {
            what: "VF",
            from: "there".to_owned(),
            to: "made anew".to_owned(),
            why: Some("the number of VFs changes only by way of none"),
        });
    }
    let action = if changes.is_empty() { Action::Keep } else { Action::Change };
    VfDiff { index, action, changes }
}

fn driver_word(driver: VfDriver) -> String {
    match driver {
        VfDriver::Default => "the host's own".to_owned(),
        VfDriver::VfioPci | VfDriver::None => driver.to_string(),
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} -> {}", self.what, self.from, self.to)?;
        match self.why {
            Some(why) => write!(f, " ({why})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Policy;

    fn wanted(vfs: u16) -> WantedPf {
        let vf = |index: VfIndex| WantedVf {
            index,
            node_guid: Guid::new(0x0200_0000_0000_0000 + u64::from(index.get())),
            port_guid: Guid::new(0x0200_0000_0001_0000 + u64::from(index.get())),
            policy: Policy::Follow,
            driver: VfDriver::Default,
        };
        WantedPf {
            pf: "0000:4b:00.0".parse().expect("address"),
            vfs: VfIndex::first(vfs).map(vf).collect(),
        }
    }

    fn right(wanted: &WantedPf) -> Vec<SeenVf> {
        let seen = |vf: &WantedVf| SeenVf {
            index: u32::from(vf.index.get()),
            node_guid: Some(vf.node_guid),
            port_guid: Some(vf.port_guid),
            policy: Some("Follow".to_owned()),
            driver: Some("mlx5_core".to_owned()),
            own_node_guid: Some(vf.node_guid),
            own_port_guid: Some(vf.port_guid),
        };
        wanted.vfs.iter().map(seen).collect()
    }

    fn shown(wanted: &WantedPf, seen: &[SeenVf]) -> Vec<String> {
        let text = |d: &VfDiff| {
            let changes: Vec<_> = d.changes.iter().map(ToString::to_string).collect();
            format!("{} {:?}: {}", d.index, d.action, changes.join("; "))
        };
        diff(wanted, seen).iter().map(text).collect()
    }

    #[test]
    fn what_is_right_is_kept() {
        let wanted = wanted(2);
        assert_eq!(shown(&wanted, &right(&wanted)), ["0 Keep: ", "1 Keep: "]);
    }

    #[test]
    fn each_difference_is_named() {
        let mut wanted = wanted(4);
        let mut seen = right(&wanted);
        seen[0].port_guid = Some(Guid::new(0));
        seen[1].own_node_guid = Some(Guid::new(7));
        seen[2].policy = Some("Down".to_owned());
        seen[2].driver = None;
        seen[3].node_guid = None;
        seen[3].own_node_guid = None;
        seen[3].driver = Some("mlx5_vfio_pci".to_owned());
        wanted.vfs[3].driver = VfDriver::VfioPci;
        assert_eq!(
            shown(&wanted, &seen),
            [
                "0 Change: port GUID 0000:0000:0000:0000 -> 0200:0000:0001:0000",
                "1 Change: node GUID 0000:0000:0000:0007 -> 0200:0000:0000:0001 (the PF has it, and the VF was bound before: bind it again)",
                "2 Change: policy down -> follow; driver none -> the host's own",
                "3 Change: node GUID unknown -> 0200:0000:0000:0003",
            ]
        );
    }

    #[test]
    fn another_number_makes_all_anew() {
        let wanted = wanted(2);
        let one = right(&wanted)[..1].to_vec();
        assert_eq!(
            shown(&wanted, &one),
            [
                "0 Change: VF there -> made anew (the number of VFs changes only by way of none)",
                "1 Create: node GUID absent -> 0200:0000:0000:0001; port GUID absent -> 0200:0000:0001:0001; policy absent -> follow; driver absent -> the host's own",
            ]
        );
        let none = WantedPf { vfs: Vec::new(), ..wanted.clone() };
        assert_eq!(shown(&none, &one), ["0 Remove: "]);
    }
}
