//! What would change at a PF's VFs, VF by VF, from what was observed to what is
//! wanted: the steps of [`super::vf`] turned round, for showing; and what of them does not come
//! about.

use super::guid::Resolved;
use super::vf::VfPlan;
use crate::ladder::vf::{lacks_name, vf_progress};
use crate::model::{
    Code, Finding, PlannedPf, PlannedVf, ToDo, VfLack, VfStep, WantedPf, WantedVf,
    plan::{Action, Attribute, Change},
};
use crate::names::{Guid, PortNumber, VfDriver, VfIndex, grouped, sh, vf_ranges};
use crate::observe::limits::{Limits, Mlx4, SharedGroup};
use crate::observe::plan_host::PlanFunction;
use crate::observe::{ObservedPf, ObservedVf};

/// What does not come about at some VFs, whatever would be done. An error: they do not become as
/// planned; else they do, and are of no use.
pub type Refused = Vec<(Vec<VfIndex>, Finding)>;

/// The plan of one PF as `ibprov plan` shows it; `observed` is the PF and what would be done there, where it is
/// clear which it is.
pub fn pf_report(
    plan: &Resolved,
    function: Option<&PlanFunction>,
    observed: Option<(ObservedPf, VfPlan, Refused)>,
) -> PlannedPf {
    let wanted = plan.wanted.as_ref().ok();
    let vfs = observed
        .as_ref()
        .zip(wanted)
        .map(|((observed, steps, refused), wanted)| diff(wanted, observed, steps, refused))
        .unwrap_or_default();
    let (present, steps, refused) = observed
        .map_or_else(Default::default, |(pf, steps, refused)| (pf.vfs.len(), steps, refused));
    PlannedPf {
        named: plan.which.to_string(),
        origin: plan.origin.clone(),
        pci: plan.pci,
        rdma: function.and_then(|f| f.rdma.first().cloned()),
        node_guid: function.and_then(|f| f.node_guid),
        port_guids: function.map(|f| f.port_guids.clone()).unwrap_or_default(),
        present,
        wanted: plan.vfs,
        pinned: plan.pinned,
        bind: wanted.map(|w| w.binding),
        vfs,
        steps: steps.steps,
        is_planned: wanted.is_some(),
        errors: plan.wanted.as_ref().err().cloned().unwrap_or_default(),
        problem: steps.problem,
        deferred: steps.deferred.into_iter().filter(|d| d.vf().is_none()).collect(),
        refused: refused.into_iter().map(|(_, finding)| finding).collect(),
        warnings: plan.warnings.clone(),
    }
}

/// What `plan` would change, by VF.
pub fn diff(
    wanted: &WantedPf,
    observed: &ObservedPf,
    plan: &VfPlan,
    refused: &[(Vec<VfIndex>, Finding)],
) -> Vec<PlannedVf> {
    let anew = is_anew(plan);
    let action = match &plan.problem {
        Some(_) => Action::Block,
        None if anew => Action::Remove,
        None => Action::Defer,
    };
    let is_surplus = |seen: &&ObservedVf| wanted.vfs.iter().all(|vf| vf.index != seen.index);
    let surplus = |seen: &ObservedVf| PlannedVf {
        index: seen.index,
        action,
        changes: Vec::new(),
        deferred: None,
        wanted: None,
    };
    let surplus = observed.vfs.iter().filter(is_surplus).map(surplus);
    let planned = |vf: &WantedVf| planned_vf(vf, observed, plan, refused);
    let mut vfs: Vec<PlannedVf> = wanted.vfs.iter().map(planned).chain(surplus).collect();
    vfs.sort_unstable_by_key(|vf| vf.index);
    vfs
}

/// The VFs that there are are removed first.
fn is_anew(plan: &VfPlan) -> bool {
    plan.steps.iter().any(|step| matches!(step, VfStep::Count { .. }))
}

/// What `plan` would change at one VF.
fn planned_vf(
    vf: &WantedVf,
    observed: &ObservedPf,
    plan: &VfPlan,
    refused: &[(Vec<VfIndex>, Finding)],
) -> PlannedVf {
    let (index, anew) = (vf.index, is_anew(plan));
    let seen = observed.vf(index);
    let deferred = plan.deferred.iter().find(|deferred| deferred.vf() == Some(index));
    let mut changes = Vec::new();
    let action = if plan.problem.is_some() {
        Action::Block
    } else if anew && seen.is_none() {
        Action::Create
    } else if anew {
        changes.push(Change::made_anew());
        Action::Change
    } else {
        let of_vf = |step: &&VfStep| step.vf() == Some(index);
        let steps: Vec<&VfStep> = plan.steps.iter().filter(of_vf).collect();
        // What is not known is told anew, changed or not.
        let is_known = |step: &&&VfStep| {
            !matches!(
                step,
                VfStep::NodeGuid { from: None, .. } | VfStep::PortGuid { from: None, .. }
            )
        };
        changes.extend(steps.iter().filter(is_known).filter_map(|step| administered(step)));
        // A GUID that is set above says it already.
        let shown = seen.filter(|_| !changes.iter().any(Change::brings_guid));
        let why = || rebind(shown.and_then(|_| vf_progress(vf, seen, observed).lacks));
        changes.extend(driver(&steps, seen.and_then(|s| s.driver.as_ref()), why));
        let refusal =
            refused.iter().find(|(vfs, finding)| vfs.contains(&index) && finding.is_error());
        changes.extend(refusal.and_then(|_| name(vf, seen?)));
        match (deferred, changes.is_empty()) {
            _ if refusal.is_some() => Action::Refuse,
            (Some(_), _) => Action::Defer,
            // It will come to be when the number changes, which is deferred.
            (None, true) if seen.is_none() => Action::Defer,
            (None, true) => Action::Keep,
            (None, false) => Action::Change,
        }
    };
    PlannedVf { index, action, changes, deferred: deferred.cloned(), wanted: Some(vf.clone()) }
}

/// The name that stays.
fn name(vf: &WantedVf, seen: &ObservedVf) -> Option<Change> {
    let VfLack::Name { what, is, planned } = lacks_name(vf, seen)? else { return None };
    let reason = Some("a VF gets its names when it is bound".to_owned());
    Some(Change { reason, ..Change::new(what, Some(is), Some(planned)) })
}

/// What is set at the PF.
fn administered(step: &VfStep) -> Option<Change> {
    match *step {
        VfStep::NodeGuid { from, to, .. } => Some(Change::guid(Attribute::NodeGuid, from, to)),
        VfStep::PortGuid { port: PortNumber::FIRST, from, to, .. } => {
            Some(Change::guid(Attribute::PortGuid, from, to))
        }
        VfStep::PortGuid { from, to, .. } => Some(Change::guid(Attribute::Port2Guid, from, to)),
        VfStep::Policy { from, to, .. } => Some(Change::new(Attribute::LinkState, from, Some(to))),
        _ => None,
    }
}

/// Why a VF that has its driver, and lacks this, is bound to it once more.
fn rebind(lack: Option<VfLack>) -> String {
    match lack {
        Some(lack @ (VfLack::Shows { .. } | VfLack::HalfBound { .. } | VfLack::NoNetdev)) => {
            lack.to_string()
        }
        _ => "a VF reads its GUIDs when it is bound".to_owned(),
    }
}

/// What becomes of its driver; `why` it is bound again, if it is.
fn driver(steps: &[&VfStep], now: Option<&String>, why: impl FnOnce() -> String) -> Option<Change> {
    let unbind = steps.iter().any(|step| matches!(step, VfStep::Unbind { .. }));
    let bind = steps.iter().find_map(|step| match step {
        VfStep::Bind { driver, .. } => Some(driver),
        _ => None,
    });
    match (unbind, bind) {
        (true, Some(driver)) if Some(driver) == now => {
            let change = Change::new(Attribute::Binding, now, now);
            Some(Change { reason: Some(why()), ..change })
        }
        (false, None) => None,
        (_, to) => Some(Change::new(Attribute::Driver, now, to)),
    }
}

/// What of `plan` does not come about, whatever `apply` does: of the VFs that are there, and that
/// it does not make anew. One for all VFs of which the same is so.
pub fn refusals(
    wanted: &WantedPf,
    observed: &ObservedPf,
    plan: &VfPlan,
    limits: &Limits,
) -> Refused {
    /// What is so of VFs, and the driver from which they would have to be unbound.
    type Kind = (Finding, Option<String>);
    if plan.problem.is_some() || is_anew(plan) {
        return Vec::new();
    }
    let of_vf = |vf: &WantedVf| {
        let seen = observed.vf(vf.index)?;
        let is_bind =
            |step: &VfStep| matches!(step, VfStep::Bind { vf: of, .. } if *of == vf.index);
        let driver = seen.driver.clone().filter(|_| !plan.steps.iter().any(is_bind));
        if let Some(driver) = driver.filter(|_| lacks_name(vf, seen).is_some()) {
            let message = "not named as planned; names are given when a VF is bound";
            let finding =
                Finding::error(Code::VfNotAsPlanned, message).look([ToDo::run("ibprov plan")]);
            return Some((finding, Some(driver)));
        }
        let is_idle = || plan.steps.iter().all(|step| step.vf() != Some(vf.index));
        let not_granted = || not_granted(vf, seen, observed).filter(|_| is_idle());
        let port2 = || port2_unset(vf, seen, limits);
        let why = limited(vf, seen, observed, limits).or_else(not_granted).or_else(port2);
        Some((why?, None))
    };
    let pf = wanted.pf;
    let refusal = |((finding, driver), vfs): (Kind, Vec<&WantedVf>)| {
        let vfs: Vec<VfIndex> = vfs.iter().map(|vf| vf.index).collect();
        let numbers: Vec<String> = vfs.iter().map(ToString::to_string).collect();
        let unbind = driver.map(|driver| ToDo::with("if they are not in use", format!(
            "for n in {}; do basename $(readlink /sys/bus/pci/devices/{pf}/virtfn$n) >/sys/bus/pci/drivers/{}/unbind; done; ibprov apply {pf}",
            numbers.join(" "),
            sh(&driver)
        )));
        let message = format!("{}: {}", vf_ranges(vfs.iter().copied()), finding.message);
        let finding = Finding { message, ..finding }.about(pf).now(unbind);
        (vfs, finding)
    };
    let kinds = grouped(&wanted.vfs, |vf| of_vf(vf)).into_iter();
    kinds.filter_map(|(why, vfs)| Some((why?, vfs))).map(refusal).collect()
}

/// That a GUID of a VF waits for the subnet manager, which an active port of the PF has asked.
fn not_granted(vf: &WantedVf, seen: &ObservedVf, pf: &ObservedPf) -> Option<Finding> {
    let lacks = vf_progress(vf, Some(seen), pf).lacks?;
    let message = "a port GUID is set that the subnet manager has not granted";
    matches!(lacks, VfLack::NotGranted { .. }).then(|| {
        Finding::error(Code::VfNotAsPlanned, message).look(["see the log of the subnet manager"])
    })
}

/// That the GUID of the second port of a VF is not set.
fn port2_unset(vf: &WantedVf, seen: &ObservedVf, limits: &Limits) -> Option<Finding> {
    if limits.port2_cannot_be_set {
        let message = "the GUID of port 2 cannot be set: the driver sets that of port 1 alone, through the netdev of either port";
        return Some(Finding::warning(Code::VfGuidZero, message));
    }
    let is_set = |guid: Guid| !guid.is_zero();
    if vf.port2_guid.is_some() || seen.admin.port2?.guid.is_some_and(is_set) {
        return None;
    }
    let message = "the GUID of port 2 is not set: the configuration gives none";
    Some(Finding::warning(Code::VfGuidZero, message).permanent([
        "use a guid.template with {kind:BITS}, with room for a third number, or set port2-guid in a [[pf.vf]] for each VF",
    ]))
}

/// What the driver of a VF, or vfio, refuses.
fn limited(vf: &WantedVf, seen: &ObservedVf, pf: &ObservedPf, limits: &Limits) -> Option<Finding> {
    match vf.driver {
        VfDriver::Host if seen.driver != pf.driver => {
            // mlx4_core binds no more VFs on this host than its parameter probe_vf says.
            let mlx4 = limits.mlx4.as_ref().filter(|mlx4| !mlx4.is_probed(vf.index))?;
            let Mlx4 { num_vfs, probe_vf } = mlx4;
            let probe_vf = if probe_vf.is_empty() { "not set" } else { probe_vf };
            let message = format!(
                "mlx4_core refuses to bind them on this host: its parameter num_vfs is {num_vfs}, and probe_vf is {probe_vf}"
            );
            Some(Finding::error(Code::VfNotProbed, message).permanent([format!(
                "write `options mlx4_core probe_vf={num_vfs}` to a file in /etc/modprobe.d, rebuild the initramfs if it contains mlx4_core, and reboot"
            )]))
        }
        VfDriver::VfioPci => {
            // vfio gives no function away alone that shares its IOMMU group with one that a
            // driver of the host has.
            let SharedGroup { group, with, driver } = limits.shared.get(&vf.index)?;
            let message = format!(
                "no guest can have one: IOMMU group {group} also has {with}, which {driver} drives"
            );
            let acs = "enable ACS and ARI in the firmware setup, or move the adapter to a slot of its own root port";
            let finding = Finding::warning(Code::IommuGroupShared, message);
            let look = ToDo::run(format!("ls /sys/kernel/iommu_groups/{group}/devices"));
            Some(finding.look([look]).permanent([acs]))
        }
        VfDriver::Host | VfDriver::None => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ladder::fixtures;
    use crate::model::Use;
    use crate::names::Policy;
    use crate::observe::VfDevices;
    use crate::plan::vf::{Uses, removed, vf_steps};

    fn wanted(drivers: &[VfDriver]) -> WantedPf {
        let mut pf = fixtures::wanted(drivers);
        for vf in &mut pf.vfs {
            let index = u64::from(vf.index.get());
            vf.node_guid = Guid::new(0x0200_0000_0000_0000 + index);
            vf.port_guid = Guid::new(0x0200_0000_0001_0000 + index);
        }
        pf
    }

    /// As `wanted`; the VFs show nothing of themselves.
    fn right(wanted: &WantedPf) -> ObservedPf {
        let mut pf = fixtures::right(wanted);
        for vf in &mut pf.vfs {
            vf.own = None;
        }
        pf
    }

    fn shown(wanted: &WantedPf, observed: &ObservedPf, uses: &Uses) -> Vec<String> {
        let plan = vf_steps(wanted, observed, uses);
        let text = |d: &PlannedVf| {
            let changes: Vec<_> = d.changes.iter().map(ToString::to_string).collect();
            format!("{} {:?}: {}", d.index, d.action, changes.join("; "))
        };
        diff(wanted, observed, &plan, &[]).iter().map(text).collect()
    }

    const ALL: [VfDriver; 4] = [VfDriver::Host, VfDriver::Host, VfDriver::Host, VfDriver::VfioPci];

    #[test]
    fn each_difference_is_named() {
        let wanted = wanted(&ALL);
        let mut observed = right(&wanted);
        observed.vfs[0].admin.port_guid = Some(Guid::new(0));
        observed.vfs[1].own = Some(VfDevices {
            rdma: "mlx5_1".parse().expect("name"),
            node_guid: Some(Guid::new(7)),
            port_guid: None,
            port2_guid: None,
            netdev: None,
            netdev_guid: None,
        });
        observed.vfs[2].admin.policy = None;
        observed.vfs[2].driver = None;
        observed.vfs[3].driver = Some("mlx5_core".to_owned());
        assert_eq!(
            shown(&wanted, &observed, &Uses::new()),
            [
                "0 Change: port GUID 0000:0000:0000:0000 -> 0200:0000:0001:0000; driver mlx5_core -> rebound (a VF reads its GUIDs when it is bound)",
                "1 Change: driver mlx5_core -> rebound (the node GUID of the VF is 0000:0000:0000:0007 instead of 0200:0000:0000:0001)",
                "2 Change: link state unknown -> follow; driver none -> mlx5_core",
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
                "0 Change: removed and created again (sriov_numvfs can only be changed via 0)",
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

    #[test]
    fn what_is_asked_about_are_vfs_with_a_driver_that_would_be_removed() {
        let wanted = wanted(&ALL[..2]);
        let mut observed = right(&self::wanted(&ALL));
        let asked = |wanted: &WantedPf, observed: &ObservedPf, uses: &Uses| {
            let vfs = removed(&vf_steps(wanted, observed, uses), observed);
            vfs.into_iter().map(VfIndex::get).collect::<Vec<_>>()
        };
        observed.vfs[1].driver = None;
        let free = Uses::new();
        assert_eq!(asked(&wanted, &observed, &free), [0, 2, 3]);
        let none = WantedPf { vfs: Vec::new(), ..wanted.clone() };
        assert_eq!(asked(&none, &observed, &free), [0, 2, 3]);
        // They stay, whatever else is changed.
        let uses = Uses::from([(wanted.vfs[0].index, vec![Use::Unknown { why: "x".into() }])]);
        assert_eq!(asked(&wanted, &observed, &uses), [0; 0]);
        assert_eq!(asked(&self::wanted(&[VfDriver::Host; 4]), &observed, &free), [0; 0]);
        observed.vfs.clear();
        assert_eq!(asked(&wanted, &observed, &free), [0; 0]);
    }

    fn driver() -> impl Strategy<Value = VfDriver> {
        prop_oneof![Just(VfDriver::Host), Just(VfDriver::VfioPci), Just(VfDriver::None)]
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
            more.resize(there, VfDriver::Host);
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
            // A GUID that is told because it is not known may be no change.
            let is_repeated = |step: &VfStep| matches!(
                step,
                VfStep::NodeGuid { from: None, .. } | VfStep::PortGuid { from: None, .. }
            );
            let done = plan.steps.iter().all(is_repeated) && plan.deferred.is_empty() && plan.problem.is_none();
            let kept = diff(&wanted, &observed, &plan, &[]).iter().all(|d| d.action == Action::Keep);
            // A PF without VFs, of which none are wanted, shows nothing.
            let empty = drivers.is_empty() && there == 0;
            prop_assert!(kept == done || empty, "{:?}", plan);
        }
    }
}
