//! What dry runs say of a PF: the steps of its plan, in the order in which they are taken.

use serde::Serialize;

use super::VfPlan;
use crate::names::PciAddress;
use crate::report::advice::Advice;
use crate::report::as_text;
use crate::report::common::{Code, Finding, Kind, Report, not_read, verdicts};
use crate::report::pf::Unresolved;
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
    /// Something would be done, or cannot be done.
    pub fn is_pending(&self) -> bool {
        let VfPlan { steps, deferred, problem } = &self.plan;
        !steps.is_empty() || !deferred.is_empty() || problem.is_some() || !self.refused.is_empty()
    }

    /// Something would be done, or the PF is not in a state in which it could be.
    pub fn is_change(&self) -> bool {
        !self.plan.steps.is_empty() || self.plan.problem.is_some()
    }

    /// What is not as it is meant to be.
    pub fn findings(&self) -> Vec<Finding> {
        let VfPlan { steps, deferred, problem } = &self.plan;
        let mut findings = Vec::new();
        findings.extend(problem.iter().map(|p| Finding::error(p.code(), p.to_string())));
        findings.extend(Refusal::findings(&self.refused));
        if !steps.is_empty() {
            let message = format!("{} steps would be taken", steps.len());
            findings.push(
                Finding::warning(Code::VfNotAsPlanned, message)
                    .advise([Advice::now("ibprov apply")]),
            );
        }
        findings.extend(deferred.iter().map(|d| Finding::warning(Code::VfDeferred, d.to_string())));
        findings.extend(self.warnings.iter().map(|w| Finding::warning(Code::Notice, w)));
        findings.into_iter().map(|finding| finding.about(self.pf)).collect()
    }

    /// The text of it: what it comes to, and a line for each thing that is done.
    pub fn lines(&self) -> Vec<String> {
        let VfPlan { steps, deferred, problem } = &self.plan;
        let head = match problem {
            Some(problem) => format!("no change is possible now: {problem}"),
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
        for finding in Refusal::findings(&self.refused) {
            lines.push(format!("  {}: {}", finding.severity, finding.message));
            lines.extend(finding.advice.iter().map(|advice| format!("    do: {}", advice.text)));
        }
        lines.extend(self.warnings.iter().map(|warning| format!("  warning: {warning}")));
        lines
    }
}

verdicts! {
    /// What a dry run comes to, in one word.
    pub DryRunVerdict {
        /// Nothing would be done.
        NothingToDo = "nothing-to-do" => Good,
        /// Something would be done, or waited for.
        WouldChange = "would-change" => Exceptions,
        /// Nothing would be done now: what is not as planned is in use, or is of no use to guests.
        Deferred = "deferred" => Exceptions,
        /// It would fail.
        WouldFail = "would-fail" => NotReady,
    }
}

impl DryRunVerdict {
    /// Of plans for PFs, and of those that cannot be made: one that may come is less than
    /// an error.
    pub fn of(pfs: &[PfSteps], unresolved: &[Unresolved]) -> Self {
        let is_refused = pfs.iter().flat_map(|pf| &pf.refused).any(Refusal::is_error);
        if is_refused || unresolved.iter().any(|pf| !pf.may_pass) {
            Self::WouldFail
        } else if !unresolved.is_empty() || pfs.iter().any(PfSteps::is_change) {
            Self::WouldChange
        } else if pfs.iter().any(PfSteps::is_pending) {
            Self::Deferred
        } else {
            Self::NothingToDo
        }
    }
}

/// What `ibprov apply --dry-run` says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ApplyPreview {
    /// The PFs of the configuration, as far as it is clear which they are.
    pub pfs: Vec<PfSteps>,
    /// The others.
    pub unresolved: Vec<Unresolved>,
    /// What could not be read.
    #[serde(skip)]
    pub problems: Vec<String>,
}

impl ApplyPreview {
    /// With the keys that every report has.
    pub fn told(&self) -> Report<DryRunVerdict, &Self> {
        let mut findings: Vec<Finding> =
            self.unresolved.iter().flat_map(Unresolved::findings).collect();
        findings.extend(self.pfs.iter().flat_map(PfSteps::findings));
        Finding::worst_first(&mut findings);
        findings.extend(not_read(&self.problems));
        let verdict = DryRunVerdict::of(&self.pfs, &self.unresolved);
        Report::new(Kind::ApplyDryRun, verdict, findings, self)
    }
}
