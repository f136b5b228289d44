//! What a run has tried, and what came of it.

use crate::names::VfIndex;
use crate::report::pf::{Stage, StepDone, StepFailure, VfStep};

/// The steps of a run, in order. None is tried twice.
#[derive(Debug, Default)]
pub(super) struct Tried(Vec<StepDone>);

impl Tried {
    pub(super) fn add(&mut self, step: VfStep, failure: Option<StepFailure>) {
        self.0.push(StepDone { step, failure });
    }

    /// The same change was tried, whatever it started from.
    pub(super) fn has(&self, step: &VfStep) -> bool {
        self.0.iter().any(|tried| tried.step.is_same(step))
    }

    /// This run has tried to bind the VF.
    pub(super) fn has_bound(&self, index: VfIndex) -> bool {
        self.of_vf(index).any(|tried| matches!(tried.step, VfStep::Bind { .. }))
    }

    /// What was tried with a VF.
    pub(super) fn of_vf(&self, index: VfIndex) -> impl Iterator<Item = &StepDone> {
        self.0.iter().filter(move |tried| tried.step.vf() == Some(index))
    }

    /// The VFs there are were made by this run.
    pub(super) fn has_made_vfs(&self) -> bool {
        self.count().any(StepDone::is_done)
    }

    /// The change of the number of VFs that failed, and how.
    pub(super) fn failed_count(&self) -> Option<(&VfStep, &StepFailure)> {
        self.count().find_map(|tried| Some((&tried.step, tried.failure.as_ref()?)))
    }

    fn count(&self) -> impl Iterator<Item = &StepDone> {
        self.0.iter().filter(|tried| tried.step.stage() == Stage::Count)
    }

    /// The last step was a success.
    pub(super) fn ends_well(&self) -> bool {
        self.0.last().is_some_and(StepDone::is_done)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &StepDone> {
        self.0.iter()
    }

    /// For the report.
    pub(super) fn into_steps(self) -> Vec<StepDone> {
        self.0
    }
}
