//! What of a plan does not come about, whatever `apply` does: known before the step.

use super::{Finding, Severity};
use crate::names::{VfIndex, displayed};

/// One such thing, at all VFs of a PF of which it is so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub vfs: Vec<VfIndex>,
    pub finding: Finding,
}

impl Refusal {
    /// The VFs do not become as planned; else they do, and are of no use.
    pub fn is_error(&self) -> bool {
        self.finding.severity == Severity::Error
    }
}

displayed!(Refusal, Self { finding, .. } => "{}", finding.message);
