//! The plan of one PF as `ibprov plan` shows it.

use super::VfPlan;
use super::diff::diff;
use super::guid::Resolved;
use crate::observe::ObservedPf;
use crate::observe::plan_host::PlanFunction;
use crate::report::pf::Deferred;
use crate::report::plan::{PfReport, VfReport, WantedReport};

/// For a PF; `observed` is the PF and what would be done there, where it is
/// clear which it is.
#[must_use]
pub fn pf_report(
    plan: &Resolved,
    function: Option<&PlanFunction>,
    observed: Option<(ObservedPf, VfPlan)>,
) -> PfReport {
    let wanted = plan.wanted.as_ref().ok();
    let of = |index: u16| wanted?.vfs.iter().find(|vf| vf.index.get() == index);
    let from = |index: u16| match usize::from(index) {
        at if at < plan.pinned => "pin".to_owned(),
        at => plan.sources.get(at).cloned().unwrap_or_default(),
    };
    let diffs = observed
        .as_ref()
        .zip(wanted)
        .map(|((observed, steps), wanted)| diff(wanted, observed, steps));
    let vfs = diffs.unwrap_or_default().into_iter().map(|diff| VfReport {
        wanted: of(diff.index).map(|vf| WantedReport {
            node_guid: vf.node_guid,
            port_guid: vf.port_guid,
            policy: vf.policy,
            driver: vf.driver,
            guids_from: from(diff.index),
        }),
        diff,
    });
    let vfs = vfs.collect();
    let (present, steps) = observed.map_or((0, VfPlan::default()), |(pf, s)| (pf.vfs.len(), s));
    PfReport {
        named: plan.which.to_string(),
        origin: plan.origin.clone(),
        pci: plan.pci,
        rdma: function.and_then(|f| f.rdma.first().cloned()),
        node_guid: function.and_then(|f| f.node_guid),
        port_guids: function.map(|f| f.port_guids.clone()).unwrap_or_default(),
        present,
        wanted: wanted.map_or(0, |w| w.vfs.len()),
        pinned: plan.pinned,
        vfs,
        errors: plan.wanted.as_ref().err().cloned().unwrap_or_default(),
        problem: steps.problem.map(|problem| problem.to_string()),
        deferred: steps
            .deferred
            .iter()
            .filter(|deferred| matches!(deferred, Deferred::Count { .. }))
            .map(ToString::to_string)
            .collect(),
        warnings: plan.warnings.clone(),
    }
}
