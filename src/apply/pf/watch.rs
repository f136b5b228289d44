//! Waiting: for our turn at the PF, until something happens, the deadline comes, or a signal asks
//! to end; and what the kernel says meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;

use super::machine::{Ear, Machine, Responder};
use crate::host::events::Happened;
use crate::host::live_line;
use crate::host::lock::RETRY;
use crate::ladder::{KernelLogFacts, cause};
use crate::model::Finding;
use crate::names::Moment;
use crate::workers::{Reply, Request};

/// How long what was changed for the time of the work is tried to be put back
/// when the deadline has come or a signal asks to end.
const GRACE: Duration = Duration::from_secs(2);

/// How long is waited for it at least: where probes hang, the time above has gone by in vain
/// for what they keep the child from answering.
const RESTORE: Duration = Duration::from_millis(500);

/// So long after its deadline a run may end.
#[cfg(test)]
pub(in crate::apply) const LONGEST_END: Duration = GRACE.saturating_add(RESTORE);

/// A machine, and the time that a run has there.
pub(super) struct Watch<M> {
    pub(super) machine: M,
    pub(super) deadline: Moment,
    pub(super) is_stopped: bool,
    pub(super) facts: KernelLogFacts,
}

impl<M: Machine> Watch<M> {
    /// Until `deadline`.
    pub(super) fn new(machine: M, deadline: Moment) -> Self {
        Self { machine, deadline, is_stopped: false, facts: KernelLogFacts::default() }
    }

    pub(super) fn now(&self) -> Moment {
        self.machine.now()
    }

    /// Until when the host is looked at for the last time.
    pub(super) fn last_moment(&self) -> Moment {
        self.deadline + GRACE
    }

    /// Until when it is waited for that what was changed for the work is put back.
    pub(super) fn until_restored(&self) -> Moment {
        self.last_moment().max(self.now() + RESTORE)
    }

    /// Nothing more is to be begun.
    pub(super) fn is_late(&self) -> bool {
        self.is_stopped || self.now() >= self.deadline
    }

    /// Until something happens, `until` or the deadline.
    pub(super) fn wait(&mut self, until: Moment) -> Result<()> {
        let happened = self.machine.wait(until.min(self.deadline), Ear::All)?;
        self.learn(&happened);
        Ok(())
    }

    /// Ask for all of these, and wait for the replies until `until`, which may be after the
    /// deadline; a signal makes it the last moment. What has not come by then is `None`.
    pub(super) fn ask(
        &mut self,
        who: Responder,
        requests: &[Request],
        until: Moment,
    ) -> Result<Vec<Option<Reply>>> {
        let numbers: Vec<u64> = requests.iter().map(|r| self.machine.ask(who, r)).collect();
        let mut replies = BTreeMap::new();
        // Who asks after a signal has reckoned with it.
        let was_stopped = self.is_stopped;
        loop {
            replies.extend(self.machine.replies(who));
            live_line::count(replies.len(), numbers.len());
            let is_cut_short = self.is_stopped && !was_stopped;
            let until = if is_cut_short { until.min(self.last_moment()) } else { until };
            let is_all = numbers.iter().all(|number| replies.contains_key(number));
            if is_all || self.now() >= until {
                return Ok(numbers.iter().map(|number| replies.remove(number)).collect());
            }
            let happened = self.machine.wait(until, Ear::Replies(who))?;
            if happened.stop && !self.is_stopped {
                // There is no use in going on.
                self.deadline = self.deadline.min(self.now());
            }
            self.learn(&happened);
        }
    }

    /// Take our turn at the PF: who is at work there is waited for until the deadline or a
    /// signal comes, and who comes second then finds all done. Gives who still is.
    pub(super) fn take_turn(&mut self, problems: &mut Vec<String>) -> Result<Option<Finding>> {
        loop {
            let other = self.machine.lock(problems);
            if other.is_none() || self.is_late() {
                return Ok(other);
            }
            // It may have been released before anybody listened.
            if !self.machine.listen_to_locks() {
                self.wait(self.now() + RETRY)?;
            }
        }
    }

    fn learn(&mut self, happened: &Happened) {
        self.is_stopped |= happened.stop;
        for line in &happened.kernel {
            cause::learn(&mut self.facts, line.level, &line.text);
        }
    }
}
