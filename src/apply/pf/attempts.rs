//! What a run has tried, and what came of it.

use crate::names::VfIndex;
use crate::report::pf::{Stage, StepDone, StepFailure, VfStep};

/// The steps of a run, in order. None is tried twice.
#[derive(Debug, Default)]
pub(super) struct Attempts(Vec<StepDone>);

impl Attempts {
    pub(super) fn add(&mut self, attempt: StepDone) {
        self.0.push(attempt);
    }

    /// The same change was tried, whatever it started from.
    pub(super) fn has(&self, step: &VfStep) -> bool {
        self.0.iter().any(|attempt| attempt.step.is_same(step))
    }

    /// To bind the VF was tried.
    pub(super) fn have_bound(&self, index: VfIndex) -> bool {
        self.of_vf(index).any(|attempt| matches!(attempt.step, VfStep::Bind { .. }))
    }

    /// What was tried with a VF.
    pub(super) fn of_vf(&self, index: VfIndex) -> impl Iterator<Item = &StepDone> {
        self.0.iter().filter(move |attempt| attempt.step.vf() == Some(index))
    }

    /// The VFs there are were made by this run.
    pub(super) fn have_made_vfs(&self) -> bool {
        self.counts().any(StepDone::is_done)
    }

    /// The change of the number of VFs that failed, and how.
    pub(super) fn failed_count(&self) -> Option<(&VfStep, &StepFailure)> {
        self.counts().find_map(|attempt| Some((&attempt.step, attempt.failure.as_ref()?)))
    }

    fn counts(&self) -> impl Iterator<Item = &StepDone> {
        self.0.iter().filter(|attempt| attempt.step.stage() == Stage::Count)
    }

    /// The last step was a success.
    pub(super) fn end_well(&self) -> bool {
        self.0.last().is_some_and(StepDone::is_done)
    }

    /// The steps that were a success.
    pub(super) fn done(&self) -> impl Iterator<Item = &VfStep> {
        self.0.iter().filter(|attempt| attempt.is_done()).map(|attempt| &attempt.step)
    }

    pub(super) fn into_steps(self) -> Vec<StepDone> {
        self.0
    }
}
