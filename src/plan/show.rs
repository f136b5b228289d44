//! The plan of one PF as `ibprov plan` shows it.

use super::VfPlan;
use super::diff::diff;
use super::guid::Resolved;
use crate::names::VfIndex;
use crate::observe::ObservedPf;
use crate::observe::plan_host::PlanFunction;
use crate::report::pf::Deferred;
use crate::report::plan::PlannedPf;
use crate::report::refusal::Refusal;

/// For a PF; `observed` is the PF and what would be done there, where it is
/// clear which it is.
pub fn pf_report(
    plan: &Resolved,
    function: Option<&PlanFunction>,
    observed: Option<(ObservedPf, VfPlan, Vec<Refusal>)>,
) -> PlannedPf {
    let wanted = plan.wanted.as_ref().ok();
    let from = |vf: VfIndex| match usize::from(vf.get()) {
        at if at < plan.pinned => "pin".to_owned(),
        at => plan.sources.get(at).cloned().unwrap_or_default(),
    };
    let vfs = observed
        .as_ref()
        .zip(wanted)
        .map(|((observed, steps, refused), wanted)| diff(wanted, observed, steps, refused, &from))
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
        deferred: steps
            .deferred
            .into_iter()
            .filter(|deferred| matches!(deferred, Deferred::Count { .. }))
            .collect(),
        refused,
        warnings: plan.warnings.clone(),
    }
}
