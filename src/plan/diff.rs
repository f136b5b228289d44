//! What would change at a PF's VFs, VF by VF, from what was observed to what is
//! wanted: the steps of [`super::vf`] turned round, for showing.

use super::vf::VfPlan;
use crate::ladder::WantedPf;
use crate::ladder::vf::shows_others;
use crate::observe::ObservedPf;
use crate::report::pf::{Deferred, VfStep};
use crate::report::plan::{Action, Change, VfDiff};

/// What `plan` would change.
#[must_use]
pub fn diff(wanted: &WantedPf, observed: &ObservedPf, plan: &VfPlan) -> Vec<VfDiff> {
    let anew = plan.steps.iter().any(|step| matches!(step, VfStep::Count { .. }));
    let mut diffs = Vec::new();
    for vf in &wanted.vfs {
        let index = vf.index;
        let seen = observed.vfs.iter().find(|seen| seen.index == index);
        let deferred = plan.deferred.iter().find(|deferred| is_about(deferred, index));
        let mut changes = Vec::new();
        let action = if plan.problem.is_some() {
            Action::Block
        } else if anew && seen.is_none() {
            Action::Create
        } else {
            if anew {
                let why = "the number of VFs changes only by way of none".to_owned();
                changes.push(Change::new("VF", "there", "made anew").because(why));
            }
            let of_vf = |step: &&VfStep| !anew && step.vf() == Some(index);
            let steps: Vec<&VfStep> = plan.steps.iter().filter(of_vf).collect();
            changes.extend(steps.iter().filter_map(|step| administered(step)));
            let stale = seen.and_then(|seen| shows_others(vf, seen, &observed.backend));
            changes.extend(bound(&steps, seen.and_then(|s| s.driver.as_deref()), stale));
            match (deferred, changes.is_empty()) {
                (Some(_), _) => Action::Defer,
                // It will come to be when the number changes, which is deferred.
                (None, true) if seen.is_none() => Action::Defer,
                (None, true) => Action::Keep,
                (None, false) => Action::Change,
            }
        };
        let deferred = deferred.map(ToString::to_string);
        diffs.push(VfDiff { index: index.get(), action, changes, deferred });
    }
    let surplus =
        observed.vfs.iter().filter(|seen| wanted.vfs.iter().all(|vf| vf.index != seen.index));
    let action = match &plan.problem {
        Some(_) => Action::Block,
        None if anew => Action::Remove,
        None => Action::Defer,
    };
    let surplus = surplus.map(|seen| VfDiff {
        index: seen.index.get(),
        action,
        changes: Vec::new(),
        deferred: None,
    });
    diffs.extend(surplus);
    diffs.sort_by_key(|diff| diff.index);
    diffs
}

fn is_about(deferred: &Deferred, index: crate::names::VfIndex) -> bool {
    matches!(deferred, Deferred::Vf { vf, .. } if *vf == index)
}

/// What is set at the PF.
fn administered(step: &VfStep) -> Option<Change> {
    fn shown<T: std::fmt::Display>(from: Option<&T>) -> String {
        from.map_or_else(|| "unknown".to_owned(), ToString::to_string)
    }
    let again = "the VF shows another: firmware may not have taken it".to_owned();
    Some(match step {
        VfStep::NodeGuid { from, to, .. } => {
            let change = Change::new("node GUID", shown(from.as_ref()), to.to_string());
            if *from == Some(*to) { change.because(again) } else { change }
        }
        VfStep::PortGuid { from, to, .. } => {
            let change = Change::new("port GUID", shown(from.as_ref()), to.to_string());
            if *from == Some(*to) { change.because(again) } else { change }
        }
        VfStep::Policy { from, to, .. } => {
            Change::new("policy", shown(from.as_ref()), to.to_string())
        }
        _ => return None,
    })
}

/// What becomes of its driver. `stale` is what a bound VF shows wrongly.
fn bound(steps: &[&VfStep], now: Option<&str>, stale: Option<String>) -> Option<Change> {
    let unbind = steps.iter().any(|step| matches!(step, VfStep::Unbind { .. }));
    let bind = steps.iter().find_map(|step| match step {
        VfStep::Bind { driver, .. } => Some(driver.as_str()),
        _ => None,
    });
    let now = now.unwrap_or("none");
    match (unbind, bind) {
        (true, Some(driver)) if driver == now => {
            let why = stale.unwrap_or_else(|| "it reads its GUIDs when it is bound".to_owned());
            Some(Change::new("driver", now, "bound again").because(why))
        }
        (_, Some(driver)) => Some(Change::new("driver", now, driver)),
        (true, None) => Some(Change::new("driver", now, "none")),
        (false, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ladder::WantedVf;
    use crate::names::{Guid, LinkLayer, Policy, VfDriver, VfIndex};
    use crate::observe::{Admin, Backend, ObservedVf, Own, Undo};
    use crate::plan::vf::{Uses, vf_steps};
    use crate::report::Use;

    fn wanted(drivers: &[VfDriver]) -> WantedPf {
        let vf = |(index, driver): (VfIndex, &VfDriver)| WantedVf {
            index,
            node_guid: Guid::new(0x0200_0000_0000_0000 + u64::from(index.get())),
            port_guid: Guid::new(0x0200_0000_0001_0000 + u64::from(index.get())),
            policy: Policy::Follow,
            driver: *driver,
        };
        let count = u16::try_from(drivers.len()).expect("few");
        WantedPf {
            pf: "0000:4b:00.0".parse().expect("address"),
            vfs: VfIndex::first(count).zip(drivers).map(vf).collect(),
        }
    }

    /// All as wanted.
    fn right(wanted: &WantedPf) -> ObservedPf {
        let vf = |vf: &WantedVf| ObservedVf {
            index: vf.index,
            pci: format!("0000:4b:01.{}", vf.index).parse().expect("address"),
            driver: match vf.driver {
                VfDriver::Default => Some("mlx5_core".to_owned()),
                VfDriver::VfioPci => Some("vfio-pci".to_owned()),
                VfDriver::None => None,
            },
            driver_override: None,
            admin: Admin {
                node_guid: Some(vf.node_guid),
                port_guid: Some(vf.port_guid),
                policy: Some(vf.policy),
                granted: None,
            },
            own: None,
        };
        ObservedPf {
            pf: wanted.pf,
            present: true,
            driver: Some("mlx5_core".to_owned()),
            physfn: None,
            total_vfs: Some(8),
            autoprobe: Some(true),
            link_layer: Some(LinkLayer::InfiniBand),
            backend: Backend::OfedSysfs,
            ipoib: true,
            vfs: wanted.vfs.iter().map(vf).collect(),
            undo: Undo::default(),
        }
    }

    fn shown(wanted: &WantedPf, observed: &ObservedPf, uses: &Uses) -> Vec<String> {
        let plan = vf_steps(wanted, observed, uses);
        let text = |d: &VfDiff| {
            let changes: Vec<_> = d.changes.iter().map(ToString::to_string).collect();
            format!("{} {:?}: {}", d.index, d.action, changes.join("; "))
        };
        diff(wanted, observed, &plan).iter().map(text).collect()
    }

    const ALL: [VfDriver; 4] =
        [VfDriver::Default, VfDriver::Default, VfDriver::Default, VfDriver::VfioPci];

    #[test]
    fn each_difference_is_named() {
        let wanted = wanted(&ALL);
        let mut observed = right(&wanted);
        observed.vfs[0].admin.port_guid = Some(Guid::new(0));
        observed.vfs[1].own = Some(Own {
            rdma: "mlx5_1".parse().expect("name"),
            node_guid: Some(Guid::new(7)),
            port_guid: None,
            netdev: None,
            netdev_guid: None,
        });
        observed.vfs[2].admin.policy = None;
        observed.vfs[2].driver = None;
        observed.vfs[3].driver = Some("mlx5_core".to_owned());
        assert_eq!(
            shown(&wanted, &observed, &Uses::new()),
            [
                "0 Change: port GUID 0000:0000:0000:0000 -> 0200:0000:0001:0000; driver mlx5_core -> bound again (it reads its GUIDs when it is bound)",
                "1 Change: driver mlx5_core -> bound again (its node GUID is 0000:0000:0000:0007 instead of 0200:0000:0000:0001)",
                "2 Change: policy unknown -> follow; driver none -> mlx5_core",
                "3 Change: driver mlx5_core -> vfio-pci",
            ]
        );
        let in_use =
            |n: u16| (VfIndex::new(n).expect("index"), vec![Use::Unknown { why: "x".into() }]);
        assert_eq!(shown(&wanted, &observed, &Uses::from([in_use(1)]))[1], "1 Defer: ");
    }

    #[test]
    fn another_number_makes_all_anew_unless_one_is_in_use() {
        let wanted = wanted(&ALL[..2]);
        let mut observed = right(&wanted);
        observed.vfs.pop();
        assert_eq!(
            shown(&wanted, &observed, &Uses::new()),
            [
                "0 Change: VF there -> made anew (the number of VFs changes only by way of none)",
                "1 Create: ",
            ]
        );
        let uses = Uses::from([(wanted.vfs[0].index, vec![Use::Unknown { why: "x".into() }])]);
        assert_eq!(shown(&wanted, &observed, &uses), ["0 Keep: ", "1 Defer: "]);
        let none = WantedPf { vfs: Vec::new(), ..wanted.clone() };
        assert_eq!(shown(&none, &observed, &Uses::new()), ["0 Remove: "]);
        assert_eq!(shown(&none, &observed, &uses), ["0 Defer: "]);
        observed.driver = None;
        assert_eq!(shown(&wanted, &observed, &Uses::new()), ["0 Block: ", "1 Block: "]);
    }

    fn driver() -> impl Strategy<Value = VfDriver> {
        prop_oneof![Just(VfDriver::Default), Just(VfDriver::VfioPci), Just(VfDriver::None)]
    }

    proptest! {
        /// What is shown and what is done are one: all is kept just where apply
        /// has no step, nothing deferred and no problem.
        #[test]
        fn all_is_kept_just_where_nothing_is_to_be_done(
            drivers in prop::collection::vec(driver(), 0..4),
            there in 0_usize..5,
            odd in prop::collection::vec((0_usize..4, 0_u8..5), 0..2),
            used in prop::option::of(0_u16..4),
            bound in prop::bool::weighted(0.9),
        ) {
            let wanted = wanted(&drivers);
            let mut more = drivers.clone();
            more.resize(there, VfDriver::Default);
            let mut observed = right(&self::wanted(&more));
            for (vf, how) in odd {
                if let Some(vf) = observed.vfs.get_mut(vf) {
                    match how {
                        0 => vf.admin.node_guid = None,
                        1 => vf.admin.port_guid = Some(Guid::new(0)),
                        2 => vf.admin.policy = Some(Policy::Down),
                        3 => vf.driver = None,
                        _ => vf.driver = Some("other".to_owned()),
                    }
                }
            }
            if !bound {
                observed.driver = None;
            }
            let use_of = |n| (VfIndex::new(n).expect("index"), vec![Use::Unknown { why: "x".into() }]);
            let uses: Uses = used.into_iter().map(use_of).collect();
            let plan = vf_steps(&wanted, &observed, &uses);
            let done = plan.steps.is_empty() && plan.deferred.is_empty() && plan.problem.is_none();
            let kept = diff(&wanted, &observed, &plan).iter().all(|d| d.action == Action::Keep);
            // A PF without VFs, of which none are wanted, shows nothing.
            let empty = drivers.is_empty() && there == 0;
            prop_assert!(kept == done || empty, "{:?}", plan);
        }
    }
}
