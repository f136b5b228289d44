//! What dry runs say of a PF: the steps of its plan, in the order in which they are taken.

use serde::Serialize;

use super::VfPlan;
use crate::names::PciAddress;
use crate::report::vf_step::together;

/// A PF of the configuration, held against the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PfSteps {
    /// The PF.
    pub pf: PciAddress,
    /// How many VFs are planned.
    pub planned: usize,
    /// What would be done.
    #[serde(flatten)]
    pub plan: VfPlan,
    /// What to know all the same.
    pub warnings: Vec<String>,
}

impl PfSteps {
    /// Something would be done, or cannot be done.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        let VfPlan { steps, deferred, problem } = &self.plan;
        !steps.is_empty() || !deferred.is_empty() || problem.is_some()
    }

    /// The text of it: what it comes to, and a line for each thing that is done.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let VfPlan { steps, deferred, problem } = &self.plan;
        let head = match problem {
            Some(problem) => format!("nothing can be done now: {problem}"),
            None if steps.is_empty() && deferred.is_empty() => {
                let vfs = if self.planned == 1 { "VF" } else { "VFs" };
                format!("{} {vfs} as planned, nothing to do", self.planned)
            }
            None if steps.is_empty() => "nothing can be done while VFs are in use".to_owned(),
            None => "in this order:".to_owned(),
        };
        let mut lines = vec![format!("PF {}: {head}", self.pf)];
        let numbered = together(steps).into_iter().enumerate();
        lines.extend(numbered.map(|(at, step)| format!("  {}. {step}", at + 1)));
        lines.extend(deferred.iter().map(|deferred| format!("  deferred: {deferred}")));
        lines.extend(self.warnings.iter().map(|warning| format!("  warning: {warning}")));
        lines
    }
}
