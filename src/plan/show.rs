//! The plan of one PF as `ibprov plan` shows it.

use super::VfPlan;
use super::diff::diff;
use super::guid::Resolved;
use crate::names::VfIndex;
use crate::observe::ObservedPf;
use crate::observe::plan_host::PlanFunction;
use crate::report::pf::Deferred;
use crate::report::plan::PlannedPf;

/// For a PF; `observed` is the PF and what would be done there, where it is
/// clear which it is.
pub fn pf_report(
    plan: &Resolved,
    function: Option<&PlanFunction>,
    observed: Option<(ObservedPf, VfPlan)>,
) -> PlannedPf {
    let wanted = plan.wanted.as_ref().ok();
    let from = |vf: VfIndex| match usize::from(vf.get()) {
        at if at < plan.pinned => "pin".to_owned(),
        at => plan.sources.get(at).cloned().unwrap_or_default(),
    };
    let vfs = observed
        .as_ref()
        .zip(wanted)
        .map(|((observed, steps), wanted)| diff(wanted, observed, steps, &from))
        .unwrap_or_default();
    let (present, steps) = observed.map_or((0, VfPlan::default()), |(pf, s)| (pf.vfs.len(), s));
    PlannedPf {
        named: plan.which.to_string(),
        origin: plan.origin.clone(),
        pci: plan.pci,
        rdma: function.and_then(|f| f.rdma.first().cloned()),
        node_guid: function.and_then(|f| f.node_guid),
        port_guids: function.map(|f| f.port_guids.clone()).unwrap_or_default(),
        present,
        wanted: wanted.map_or(0, |w| w.vfs.len()),
        pinned: plan.pinned,
        bind: wanted.map(|w| w.binding),
        vfs,
        is_planned: wanted.is_some(),
        errors: plan.wanted.as_ref().err().cloned().unwrap_or_default(),
        problem: steps.problem,
        deferred: steps
            .deferred
            .into_iter()
            .filter(|deferred| matches!(deferred, Deferred::Count { .. }))
            .collect(),
        warnings: plan.warnings.clone(),
    }
}
