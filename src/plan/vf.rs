//! From what a PF's VFs shall be and what they are to the steps between.
//!
//! The order is the point: automatic probing off, the number, then GUIDs and
//! policy at the PF, then one bind for each VF, then probing back on. So no VF
//! is probed twice, and none is ever seen with a GUID that is not its own.

use std::collections::BTreeMap;

use super::guid::ethernet;
use crate::ladder::vf::{
    PlannedPort, awaits_grant, guids_are_hidden, has_driver, has_node_guids, has_other_guids,
    is_left_to_cni, may_come, ports, shows_other, vf_progress, wanted_driver,
};
use crate::model::{Code, Deferred, Finding, ToDo, Use, VfLack, VfStep, WantedPf, WantedVf};
use crate::names::{
    BindOrder, Guid, LinkLayer, PciAddress, Policy, VfDriver, VfIndex, VfOwner, is_vfio,
};
use crate::observe::{Backend, ObservedPf, ObservedVf};

/// The way from observed to wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VfPlan {
    /// In this order, by stage.
    pub steps: Vec<VfStep>,
    /// What is not done, because somebody uses the VF.
    pub deferred: Vec<Deferred>,
    /// Why nothing can be done.
    pub problem: Option<Finding>,
}

/// The uses of VFs, as far as they were looked at.
pub type Uses = BTreeMap<VfIndex, Vec<Use>>;

/// The same by the index of the VF, of functions that were found in use.
pub fn uses_by_index(
    observed: &ObservedPf,
    functions: Vec<(PciAddress, Vec<Use>)>,
) -> impl Iterator<Item = (VfIndex, Vec<Use>)> {
    functions.into_iter().filter_map(|(pci, uses)| {
        let vf = observed.vfs.iter().find(|vf| vf.pci == pci)?;
        Some((vf.index, uses))
    })
}

/// The VFs that `plan` for `wanted` would take from their drivers or destroy, or whose
/// link it would take down: who uses them must be known before.
pub fn disturbed(wanted: &WantedPf, plan: &VfPlan, observed: &ObservedPf) -> Vec<VfIndex> {
    let by_count = plan.steps.iter().any(|s| matches!(s, VfStep::Count { from: 1.., .. }));
    let disturbs = |step: &VfStep, index| match *step {
        VfStep::Policy { from, .. } => {
            wanted.vfs.iter().any(|vf| vf.index == index && takes_link(vf, from))
        }
        _ => true,
    };
    let touched = |vf: &&ObservedVf| {
        let mut steps = plan.steps.iter().filter(|s| s.vf() == Some(vf.index));
        by_count || vf.driver.is_some() && steps.any(|step| disturbs(step, vf.index))
    };
    observed.vfs.iter().filter(touched).map(|vf| vf.index).collect()
}

/// The VFs with a driver that `plan` would destroy.
pub fn removed(plan: &VfPlan, observed: &ObservedPf) -> Vec<VfIndex> {
    let is_by_count = plan.steps.iter().any(|s| matches!(s, VfStep::Count { from: 1.., .. }));
    let is_removed = |vf: &&ObservedVf| is_by_count && vf.driver.is_some();
    observed.vfs.iter().filter(is_removed).map(|vf| vf.index).collect()
}

/// The steps from `observed` to `wanted`. `uses` holds who uses which VF; a VF
/// that is not in it is taken for free, so ask for [`disturbed`] before acting.
pub fn vf_steps(wanted: &WantedPf, observed: &ObservedPf, uses: &Uses) -> VfPlan {
    let problem = problem(wanted, observed).map(|problem| problem.about(observed.pf));
    let mut plan = VfPlan { problem, ..VfPlan::default() };
    let mut autoprobe_back = observed.undo.autoprobe;
    if plan.problem.is_none() {
        let (from, to) = (count(observed.vfs.len()), count(wanted.vfs.len()));
        let in_use: Uses = uses.iter().filter(|(_, u)| !u.is_empty()).map(clone).collect();
        let renewed = from != to && in_use.is_empty();
        if renewed {
            if to > 0 && observed.autoprobe == Some(true) {
                plan.steps.push(VfStep::AutoprobeOff);
                autoprobe_back = Some(true);
            }
            plan.steps.push(VfStep::Count { from, to });
        } else if from != to {
            plan.deferred.push(Deferred::Count { from, to, uses: in_use });
        }
        for vf in &wanted.vfs {
            let seen = observed.vf(vf.index).filter(|_| !renewed);
            // One that does not exist and will not for now has no steps.
            if renewed || seen.is_some() {
                let uses = uses.get(&vf.index).map_or(&[][..], Vec::as_slice);
                one_vf(&mut plan, vf, seen, observed, uses);
            }
        }
        if wanted.binding.order == BindOrder::InOrder {
            put_in_order(&mut plan, wanted, observed, renewed);
        }
        if !renewed {
            plan.steps.extend(overrides_back(observed));
        }
    } else {
        plan.steps.extend(overrides_back(observed));
    }
    plan.steps.extend(autoprobe_back.map(|on| VfStep::RestoreAutoprobe { on }));
    plan.steps.sort_by_key(VfStep::stage);
    plan
}

fn clone<A: Clone, B: Clone>((a, b): (&A, &B)) -> (A, B) {
    (a.clone(), b.clone())
}

fn count(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

/// Why nothing can be done at a PF that has a plan.
fn problem(wanted: &WantedPf, observed: &ObservedPf) -> Option<Finding> {
    let (want, have) = (count(wanted.vfs.len()), count(observed.vfs.len()));
    let pf = observed.pf;
    let blocked = |message: String| Finding::error(Code::VfPlanBlocked, message);
    let log = || ToDo::run(format!("dmesg | grep {pf}"));
    if !observed.present {
        let message = "no PCI function has this address; the adapter may be in another slot";
        return Some(
            Finding::error(Code::PfAbsent, message).look([ToDo::run("lspci -Dnn -d 15b3:")]),
        );
    }
    if observed.driver.is_none() {
        let message = "no driver is bound to the PF, so that it cannot have VFs".to_owned();
        return Some(blocked(message).look([ToDo::run(format!("lspci -k -s {pf}")), log()]));
    }
    if want == 0 && have == 0 {
        return None;
    }
    if observed.link_layer == Some(LinkLayer::Ethernet) {
        return Some(ethernet(pf, false));
    }
    if matches!(observed.backend, Backend::Mlx4 { .. }) && want != have {
        let message = format!(
            "mlx4_core creates its VFs when it is loaded: {want} are planned and {have} are present"
        );
        return Some(blocked(message).permanent([format!(
            "set `options mlx4_core num_vfs={want} probe_vf={want}` in /etc/modprobe.d, rebuild the initramfs if it contains mlx4_core, and reboot"
        )]));
    }
    let is_missing = match observed.backend {
        Backend::OfedSysfs => false,
        Backend::Netlink { ifindex } => ifindex.is_none(),
        Backend::Mlx4 { ref iov } => iov.is_none(),
    };
    let not_ready = |message| Finding::error(Code::PfNotReady, message);
    if observed.link_layer.is_none() {
        let message = "the driver of the PF has registered no RDMA device";
        return Some(not_ready(message).look([log()]));
    }
    if is_missing {
        let message = "the PF has no IPoIB netdev, which is needed to set GUIDs of VFs (this host has no sriov/N files of MLNX_OFED)";
        return Some(not_ready(message).now([ToDo::run("modprobe ib_ipoib")]).look([log()]));
    }
    let why = observed.unreadable.as_ref()?;
    let message = format!(
        "the settings of the VFs at the PF cannot be read: {why}. The driver or the firmware may hang"
    );
    Some(blocked(message).look([log(), ToDo::run("ibprov status")]))
}

fn one_vf(
    plan: &mut VfPlan,
    vf: &WantedVf,
    seen: Option<&ObservedVf>,
    pf: &ObservedPf,
    uses: &[Use],
) {
    let target = wanted_driver(vf, pf);
    let bound = seen.and_then(|s| s.driver.clone());
    let guids_wrong = seen.is_none_or(|s| has_other_guids(vf, s, &pf.backend));
    let on_host = bound.is_some() && bound == pf.driver;
    let is_left = seen.is_some_and(|seen| is_left_to_cni(vf, seen));
    let is_given = seen.is_some_and(|seen| is_given_to_cni(vf, seen));
    let moves = !is_given && bound.is_some() && !has_driver(bound.as_deref(), target.as_deref());
    let fails = |s: &ObservedVf| {
        s.half_bound || s.ipoib_failed || shows_other(vf, s, &pf.backend).is_some()
    };
    let has_failed = on_host && !is_left && seen.is_some_and(fails);
    // Its driver has read, or is about to read, what is not to be.
    let rebind = has_failed || on_host && guids_wrong;
    let guids_hidden =
        bound.is_some() && !is_given && seen.is_some_and(|seen| guids_are_hidden(seen, pf));
    let disturbs = moves || rebind || (bound.is_some() && guids_wrong) || guids_hidden;

    if disturbs && !uses.is_empty() {
        // A virtual machine has it, with the GUIDs that it shall have.
        let guids_right = !guids_wrong && !guids_hidden;
        let handed_over = bound.as_deref().is_some_and(is_vfio) && guids_right;
        if !(handed_over && vf.driver == VfDriver::Host) {
            let lack = vf_progress(vf, seen, pf).lacks;
            let what = lack.unwrap_or(VfLack::Driver { is: bound, planned: target });
            plan.deferred.push(Deferred::Vf { vf: vf.index, what, uses: uses.to_vec() });
        }
        policy(plan, vf, seen, &pf.backend, uses);
        return;
    }
    let taken = bound.clone().filter(|_| moves || rebind);
    plan.steps.extend(taken.map(|driver| VfStep::Unbind { vf: vf.index, driver }));
    let (index, admin) = (vf.index, seen.map(|s| s.admin).unwrap_or_default());
    // By netlink the PF's driver repeats what it was told, whether firmware took
    // it or not: it is told again before each bind.
    let binds = target.is_some() && (bound.is_none() || has_failed);
    let again = binds && seen.is_some() && matches!(pf.backend, Backend::Netlink { .. });
    let tells = |is: Option<Guid>, planned| {
        let is_due = match is {
            Some(is) => is != planned,
            // Of one that the host's driver has, what it shows is known. Of another nothing
            // is, so it is told, which changes nothing if it was right.
            None => rebind || !on_host && uses.is_empty() && (bound.is_none() || !is_given),
        };
        !is_left && (again || is_due)
    };
    if has_node_guids(&pf.backend) && tells(admin.node_guid, vf.node_guid) {
        let (from, to) = (admin.node_guid, vf.node_guid);
        plan.steps.push(VfStep::NodeGuid { vf: index, from, to });
    }
    for PlannedPort { number: port, planned: to, is: from, .. } in ports(vf, admin) {
        if tells(from, to) {
            plan.steps.push(VfStep::PortGuid { vf: index, port, from, to });
        }
    }
    policy(plan, vf, seen, &pf.backend, uses);
    if is_left {
        return;
    }
    // A driver that came before the subnet manager's answer would read the old one.
    if seen.is_some_and(|seen| awaits_grant(vf, seen)) {
        return;
    }
    if let Some(driver) = target.filter(|_| bound.is_none() || moves || rebind) {
        let on_host = vf.driver == VfDriver::Host;
        let rdma = vf.names.rdma.clone().filter(|_| on_host);
        plan.steps.push(VfStep::Bind { vf: index, driver, after: None, rdma });
    }
}

/// Have each VF that gets a driver of this host wait for the one before it that has
/// none yet, or whose devices are still to come.
fn put_in_order(plan: &mut VfPlan, wanted: &WantedPf, observed: &ObservedPf, renewed: bool) {
    let mut before = None;
    for vf in wanted.vfs.iter().filter(|vf| vf.driver == VfDriver::Host) {
        let is_it =
            |step: &&mut VfStep| matches!(step, VfStep::Bind { vf: of, .. } if *of == vf.index);
        let bind = plan.steps.iter_mut().find(is_it);
        let comes = || observed.vf(vf.index).is_some_and(|seen| may_come(vf, seen, observed));
        match bind {
            Some(VfStep::Bind { after, .. }) => {
                *after = before;
                before = Some(vf.index);
            }
            _ if !renewed && comes() => before = Some(vf.index),
            _ => {}
        }
    }
}

/// Those of a plan's `steps` that can be done now: of the first stage, and none that has
/// to come after a bind that is among them, or after a VF whose devices are still
/// awaited.
pub fn due(steps: &[VfStep], is_awaited: impl Fn(VfIndex) -> bool) -> Vec<VfStep> {
    let binds = |vf: VfIndex| {
        steps.iter().any(|step| matches!(step, VfStep::Bind { vf: of, .. } if *of == vf))
    };
    let Some(stage) = steps.first().map(VfStep::stage) else { return Vec::new() };
    let is_due = |step: &&VfStep| match step {
        VfStep::Bind { after: Some(after), .. } => !binds(*after) && !is_awaited(*after),
        _ => true,
    };
    steps.iter().filter(|step| step.stage() == stage).filter(is_due).cloned().collect()
}

/// It belongs to a CNI plugin and has its first GUIDs: the plugin may change its link state or
/// its driver without changing GUIDs. One with a driver of which the PF does not answer may
/// have them.
fn is_given_to_cni(vf: &WantedVf, seen: &ObservedVf) -> bool {
    let may_have = || !seen.admin.is_answered && seen.driver.is_some();
    let has = seen.admin.port_guid.map_or_else(may_have, |guid| !guid.is_zero());
    vf.owner == VfOwner::Cni && has
}

/// Acts at once. On a VF in use it is set too, unless that may take its link away. Of a VF
/// with a driver the PF must have answered: its link may have been set up by hand.
fn policy(
    plan: &mut VfPlan,
    vf: &WantedVf,
    seen: Option<&ObservedVf>,
    backend: &Backend,
    uses: &[Use],
) {
    let (index, from) = (vf.index, seen.and_then(|s| s.admin.policy));
    let is_given = seen.is_some_and(|seen| is_given_to_cni(vf, seen));
    let is_unread =
        from.is_none() && seen.is_some_and(|seen| seen.driver.is_some() && !seen.admin.is_answered);
    if !has_node_guids(backend) || from == Some(vf.policy) || is_given || is_unread {
        return;
    }
    if uses.is_empty() || !takes_link(vf, from) {
        plan.steps.push(VfStep::Policy { vf: index, from, to: vf.policy });
    } else if plan.deferred.iter().all(|deferred| deferred.vf() != Some(index)) {
        let what = VfLack::Policy { is: from, planned: vf.policy };
        plan.deferred.push(Deferred::Vf { vf: index, what, uses: uses.to_vec() });
    }
}

/// The policy of the plan may take down a link that `from` keeps up, and nobody has
/// said of this very VF that it shall: somebody may have set `Up` by hand because the
/// physical port is down.
fn takes_link(vf: &WantedVf, from: Option<Policy>) -> bool {
    let down = match vf.policy {
        Policy::Up => false,
        Policy::Follow => from == Some(Policy::Up),
        Policy::Down => true,
    };
    down && !vf.policy_named
}

fn overrides_back(observed: &ObservedPf) -> impl Iterator<Item = VfStep> {
    observed.undo.overrides.iter().filter_map(|(pci, to)| {
        let vf = observed.vfs.iter().find(|v| v.pci == *pci)?;
        let now = vf.driver_override.as_deref().unwrap_or_default();
        (now != to).then(|| VfStep::RestoreOverride { pci: *pci, to: to.clone() })
    })
}

#[cfg(test)]
pub(crate) mod kernel;
#[cfg(test)]
mod tests;
