//! What dry runs say of a PF: the steps of its plan, in the order in which they are taken.

use serde::Serialize;

use super::VfPlan;
use crate::names::PciAddress;
use crate::report::common::{Finding, Kind, Report, Verdict, as_text, not_read};
use crate::report::pf::Unresolved;
use crate::report::plan::PlannedPf;
use crate::report::refusal::Refusal;
use crate::report::vf_step::together;

/// A PF of the configuration, held against the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PfSteps {
    /// The PF.
    pub pf: PciAddress,
    /// How many VFs are planned.
    pub planned: usize,
    /// What would be done.
    #[serde(flatten)]
    pub plan: VfPlan,
    /// What does not come about, whatever would be done.
    #[serde(serialize_with = "as_text::list")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub refused: Vec<Refusal>,
    /// What to know all the same.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

impl PfSteps {
    /// Of a PF of the configuration; the other, where no plan can be made for it.
    pub fn of(pf: &PlannedPf) -> Result<Self, Unresolved> {
        let Some(pci) = pf.pci.filter(|_| pf.is_planned) else {
            let (which, origin, errors) = (pf.named.clone(), pf.origin.clone(), pf.errors.clone());
            return Err(Unresolved { which, origin, pci: pf.pci, errors });
        };
        let of_vfs = pf.vfs.iter().filter_map(|vf| vf.deferred.clone());
        Ok(Self {
            pf: pci,
            planned: pf.wanted,
            plan: VfPlan {
                steps: pf.steps.clone(),
                deferred: pf.deferred.iter().cloned().chain(of_vfs).collect(),
                problem: pf.problem.clone(),
            },
            refused: pf.refused.clone(),
            warnings: pf.warnings.iter().map(|told| told.message.clone()).collect(),
        })
    }

    /// Something would be done, or cannot be done.
    pub fn is_pending(&self) -> bool {
        let VfPlan { steps, deferred, problem } = &self.plan;
        !steps.is_empty() || !deferred.is_empty() || problem.is_some() || !self.refused.is_empty()
    }

    /// Something would be done, or the PF is not in a state in which it could be.
    pub fn is_change(&self) -> bool {
        !self.plan.steps.is_empty() || self.plan.problem.is_some()
    }

    /// The text of it: what it comes to, and a line for each thing that is done.
    pub fn lines(&self) -> Vec<String> {
        let VfPlan { steps, deferred, problem } = &self.plan;
        let head = match problem {
            Some(problem) => format!("no change is possible now: {}", problem.with_remedy()),
            None if !self.is_pending() => {
                let vfs = if self.planned == 1 { "VF" } else { "VFs" };
                format!("{} {vfs} as planned, nothing to do", self.planned)
            }
            None if steps.is_empty() && deferred.is_empty() => "nothing to do".to_owned(),
            None if steps.is_empty() => "no change is possible while VFs are in use".to_owned(),
            None => "in this order:".to_owned(),
        };
        let mut lines = vec![format!("PF {}: {head}", self.pf)];
        let numbered = together(steps).into_iter().enumerate();
        lines.extend(numbered.map(|(at, step)| format!("  {}. {step}", at + 1)));
        lines.extend(deferred.iter().map(|deferred| format!("  deferred: {deferred}")));
        for Refusal { finding, .. } in &self.refused {
            lines.push(format!("  {}: {}", finding.severity, finding.message));
            lines.extend(finding.advice.iter().map(|advice| format!("    do: {}", advice.text)));
        }
        lines.extend(self.warnings.iter().map(|warning| format!("  warning: {warning}")));
        lines
    }
}

/// What `ibprov apply --dry-run` says, and that of boot of VFs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ApplyPreview {
    /// The PFs of the configuration, as far as it is clear which they are.
    pub pfs: Vec<PfSteps>,
    /// The others.
    pub unresolved: Vec<Unresolved>,
    /// What they lack.
    #[serde(skip)]
    pub findings: Vec<Finding>,
    /// What could not be read.
    #[serde(skip)]
    pub problems: Vec<String>,
}

impl ApplyPreview {
    /// Of these plans, held against the host.
    pub fn new(planned: &[PlannedPf], problems: Vec<String>) -> Self {
        let mut all = Self { problems, ..Self::default() };
        for pf in planned {
            all.findings.extend(pf.findings(None));
            match PfSteps::of(pf) {
                Ok(steps) => all.pfs.push(steps),
                Err(unresolved) => all.unresolved.push(unresolved),
            }
        }
        all.pfs.sort_unstable_by_key(|pf| pf.pf);
        all
    }

    /// What they come to: a PF that may come is less than an error.
    pub fn verdict(&self) -> Verdict {
        let is_refused = self.pfs.iter().flat_map(|pf| &pf.refused).any(Refusal::is_error);
        if is_refused || self.unresolved.iter().any(|pf| !pf.may_pass()) {
            Verdict::WouldFail
        } else if !self.unresolved.is_empty() || self.pfs.iter().any(PfSteps::is_change) {
            Verdict::WouldChange
        } else if self.pfs.iter().any(PfSteps::is_pending) {
            Verdict::Deferred
        } else {
            Verdict::NothingToDo
        }
    }

    /// With the keys that every report has.
    pub fn told(&self) -> Report<&Self> {
        let mut findings = self.findings.clone();
        Finding::worst_first(&mut findings);
        findings.extend(not_read(&self.problems));
        Report::new(Kind::ApplyDryRun, self.verdict(), findings, self)
    }
}
