//! What dry runs say of PFs: the steps of their plans, in the order in which they are taken.

use serde::Serialize;

use crate::model::common::{Finding, Kind, Report, Verdict, not_read};
use crate::model::plan::PlannedPf;
use crate::model::refusal::Refusal;

/// What `ibprov apply --dry-run` says, and that of boot of VFs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ApplyPreview {
    /// The PFs of the configuration, those first for which a plan can be made.
    pub pfs: Vec<PlannedPf>,
    /// What could not be read.
    #[serde(skip)]
    pub problems: Vec<String>,
}

impl ApplyPreview {
    /// Of these plans, held against the host.
    pub fn new(mut pfs: Vec<PlannedPf>, problems: Vec<String>) -> Self {
        pfs.sort_by_key(|pf| (!pf.is_planned, pf.pci.filter(|_| pf.is_planned)));
        Self { pfs, problems }
    }

    /// What they come to: a PF that may come is less than an error.
    pub fn verdict(&self) -> Verdict {
        let mut errors = self.pfs.iter().flat_map(|pf| &pf.errors);
        let mut refused = self.pfs.iter().flat_map(|pf| &pf.refused);
        if refused.any(Refusal::is_error) || errors.any(|error| !error.code.may_pass()) {
            Verdict::WouldFail
        } else if self.pfs.iter().any(|pf| !pf.is_planned || pf.is_change()) {
            Verdict::WouldChange
        } else if self.pfs.iter().any(PlannedPf::is_pending) {
            Verdict::Deferred
        } else {
            Verdict::NothingToDo
        }
    }

    /// What is not as it is meant to be.
    pub fn findings(&self) -> Vec<Finding> {
        self.pfs.iter().flat_map(|pf| pf.findings(None)).collect()
    }

    /// With the keys that every report has.
    pub fn told(&self) -> Report<&Self> {
        let mut findings = self.findings();
        Finding::worst_first(&mut findings);
        findings.extend(not_read(&self.problems));
        Report::new(Kind::ApplyDryRun, self.verdict(), findings, self)
    }
}
