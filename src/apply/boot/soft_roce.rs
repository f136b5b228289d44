//! The soft RoCE devices of the configuration, while boot runs.

use std::time::Duration;

use super::Boot;
use crate::config::RXE_MODULE;
use crate::model::{RxeReport, RxeState};
use crate::names::{ModuleState, Moment};
use crate::observe::{Observed, rxe};
use crate::plan::rxe::judge_rxe;

/// For how long boot waits for udev to finish with the netdev of a soft RoCE device that is
/// there already. One that udev finishes with later starts a unit.
const NAMED: Duration = Duration::from_secs(10);

/// The module of soft RoCE is there.
pub(super) fn has_module(observed: &Observed) -> bool {
    let is_there = |(name, state): (&crate::names::ModuleName, &ModuleState)| {
        name.as_str() == RXE_MODULE && *state == ModuleState::Loaded
    };
    observed.modules.iter().any(is_there)
}

impl Boot<'_> {
    /// How each of them stands; nothing is looked at where none is configured.
    pub(super) fn rxe(&self) -> Vec<RxeReport> {
        let rows = &self.config.rxe;
        if rows.is_empty() {
            return Vec::new();
        }
        let mut reports = judge_rxe(rows, &rxe(self.observer.root(), rows));
        for report in &mut reports {
            match &report.state {
                RxeState::Absent => {
                    let first = self.steps.creations_of(&report.name).next();
                    report.reason = first.and_then(|step| step.failure.clone());
                }
                // rdma-core's rule renames it, and ours names it again.
                RxeState::NetdevTaken { .. }
                    if self.steps.creations_of(&report.name).any(|step| step.failure.is_none()) =>
                {
                    report.state = RxeState::NotNamed;
                }
                _ => {}
            }
        }
        reports
    }

    /// Until when boot goes on for the sake of them; `None` if there is nothing to wait for.
    pub(super) fn rxe_deadline(
        &self,
        rxe: &[RxeReport],
        now: Moment,
        deadline: Moment,
    ) -> Option<Moment> {
        if self.steps.done.rxe_in_flight() {
            return (now < deadline).then_some(deadline);
        }
        let is_open = rxe.iter().any(|report| report.state == RxeState::NotNamed);
        let until = deadline.min(self.report.started_usec + NAMED);
        (is_open && now < until).then_some(until)
    }
}
