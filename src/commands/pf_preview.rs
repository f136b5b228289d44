//! What `apply` would do at a PF, for those who only show it: the same look and the
//! same plan, without the doing.
//!
//! As `apply` does, it has a child read what may hang, and waits for it only so
//! long. A copied tree is read in this process.

use std::collections::BTreeSet;

use crate::host::Root;
use crate::ladder::WantedPf;
use crate::names::{PciAddress, VfIndex, vf_ranges};
use crate::observe::plan_host::PlanHost;
use crate::observe::{Look, ObservedPf, Undo, pf};
use crate::plan::VfPlan;
use crate::plan::guid::Resolved;
use crate::plan::preview::PfSteps;
use crate::plan::show::pf_report;
use crate::plan::vf::{Uses, disturbed, vf_steps};
use crate::report::Use;
use crate::report::plan::PlannedPf;
use crate::workers::{Answer, Client, Failure, Request, SILENCE_USEC};

/// Looks at PFs, one after the other.
pub(super) struct PfPreview<'a> {
    root: &'a Root,
    worker: Client<'a>,
    /// What could not be read of VFs, one line each.
    pub(super) problems: BTreeSet<String>,
}

/// The plans, held against the host, and what could not be read of it. A PF that is
/// `silent` is not asked.
pub(super) fn reports(
    root: &Root,
    plans: &[Resolved],
    facts: &PlanHost,
    silent: &BTreeSet<PciAddress>,
) -> (Vec<PlannedPf>, BTreeSet<String>) {
    let mut preview = PfPreview::new(root);
    let pfs = plans.iter().map(|plan| {
        let function = facts.functions.iter().find(|f| Some(f.pci) == plan.pci);
        let observed = plan.pci.filter(|pci| !silent.contains(pci)).map(|pci| {
            let seen = preview.look(pci);
            let steps = plan.wanted.as_ref().map(|wanted| preview.steps(wanted, &seen));
            (seen, steps.unwrap_or_default())
        });
        pf_report(plan, function, observed)
    });
    let pfs = pfs.collect();
    (pfs, preview.problems)
}

impl<'a> PfPreview<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        Self { root, worker: Client::new(root), problems: BTreeSet::new() }
    }

    /// The PF with all that is administered there.
    pub(super) fn look(&mut self, pci: PciAddress) -> ObservedPf {
        let mut look = Look::new(self.root);
        let mut pf = pf::look(&mut look, pci, Undo::default());
        let mut problems: Vec<String> = look.problems.into_iter().collect();
        let mut refusal = None;
        for reply in self.worker.ask_all(&Request::all_of(&pf)) {
            match reply {
                Ok(Answer::Administered(told)) => pf.learn(told, &mut problems),
                Ok(other) => pf.unreadable = Some(format!("an unexpected answer: {other:?}")),
                Err(Failure::Refused(refused)) => refusal = Some(refused.said),
                Err(failure) => pf.unreadable = Some(why(&failure)),
            }
        }
        let unanswered: Vec<VfIndex> = pf.unanswered().collect();
        // A copied tree has no kernel to ask.
        if !unanswered.is_empty() && pf.unreadable.is_none() && self.root.is_live() {
            let why = refusal.as_deref().unwrap_or(
                "the driver of the PF did not report all of them, as when a firmware command fails, see dmesg",
            );
            let vfs = vf_ranges(unanswered.into_iter());
            problems.push(format!("the settings of {vfs} of {pci} at the PF: {why}"));
        }
        self.problems.extend(problems);
        pf
    }

    /// What would be done, with who uses the VFs that it would disturb.
    pub(super) fn steps(&mut self, wanted: &WantedPf, observed: &ObservedPf) -> VfPlan {
        let plan = vf_steps(wanted, observed, &Uses::new());
        let touched = disturbed(wanted, &plan, observed);
        if touched.is_empty() {
            return plan;
        }
        let of = |vf| observed.vf(vf).map(|v| v.pci);
        let pcis = touched.iter().filter_map(|vf| of(*vf)).collect();
        let uses = match self.worker.ask_all(&[Request::Uses(pcis)]).pop() {
            Some(Ok(Answer::Uses(uses))) => uses,
            Some(Err(failure)) => vec![vec![Use::Unknown { why: why(&failure) }]; touched.len()],
            other => {
                let why = format!("an unexpected answer: {other:?}");
                vec![vec![Use::Unknown { why }]; touched.len()]
            }
        };
        vf_steps(wanted, observed, &touched.into_iter().zip(uses).collect())
    }

    /// What dry runs say of a PF.
    pub(super) fn would(&mut self, wanted: &WantedPf, warnings: &[String]) -> PfSteps {
        let seen = self.look(wanted.pf);
        PfSteps {
            pf: wanted.pf,
            planned: wanted.vfs.len(),
            plan: self.steps(wanted, &seen),
            warnings: warnings.to_vec(),
        }
    }
}

fn why(failure: &Failure) -> String {
    match failure {
        Failure::Silent => format!("no answer in {} s", SILENCE_USEC / 1_000_000),
        failure => failure.to_string(),
    }
}
