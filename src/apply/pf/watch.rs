//! Waiting: for our turn at the PF, until something happens, the deadline comes, or a signal asks
//! to end; and what the kernel says meanwhile.

use std::os::fd::BorrowedFd;
use std::path::Path;

use crate::host::clock;
use crate::host::events::{Events, Happened};
use crate::host::lock::{Held, LockError, Locks, RETRY_USEC};
use crate::ladder::{Facts, cause};
use crate::names::PciAddress;
use crate::report::common::{Code, Finding};

/// How long what was changed for the time of the work is tried to be put back
/// when the deadline has come or a signal asks to end.
const GRACE_USEC: u64 = 2_000_000;

/// How long is waited for it at least: where probes hang, the time above has gone by in vain
/// for what they keep the child from answering.
const RESTORE_USEC: u64 = 500_000;

/// The events of a run and its time.
pub(super) struct Watch {
    events: Events,
    deadline: u64,
    is_stopped: bool,
    facts: Facts,
}

impl Watch {
    /// Until `deadline`, microseconds of CLOCK_MONOTONIC.
    pub(super) fn open(deadline: u64) -> anyhow::Result<Self> {
        let events = Events::open_quiet()?;
        Ok(Self { events, deadline, is_stopped: false, facts: Facts::default() })
    }

    /// What the kernel said of functions.
    pub(super) const fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) const fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Until when the host is looked at for the last time.
    pub(super) const fn last_moment(&self) -> u64 {
        self.deadline.saturating_add(GRACE_USEC)
    }

    /// Until when it is waited for that what was changed for the work is put back.
    pub(super) fn until_restored(&self) -> u64 {
        self.last_moment().max(clock::monotonic_usec().saturating_add(RESTORE_USEC))
    }

    /// A signal asked to end.
    pub(super) const fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Nothing more is to be begun.
    pub(super) fn is_late(&self) -> bool {
        self.is_stopped || clock::monotonic_usec() >= self.deadline
    }

    /// The deadline is now: there is no use in going on.
    pub(super) fn give_up(&mut self) {
        self.deadline = self.deadline.min(clock::monotonic_usec());
    }

    /// Until something happens, `until` or the deadline.
    pub(super) fn wait(&mut self, until: u64) -> anyhow::Result<()> {
        let happened = self.events.wait(until.min(self.deadline))?;
        self.learn(&happened);
        Ok(())
    }

    /// Until something happens, `child` can be read, or `until`, which may be after
    /// the deadline. A signal makes it the deadline.
    pub(super) fn wait_for_child(
        &mut self,
        child: Option<BorrowedFd<'_>>,
        until: u64,
    ) -> anyhow::Result<()> {
        let happened = self.events.wait_only(until, child.into_iter().collect())?;
        if happened.stop && !self.is_stopped {
            self.give_up();
        }
        self.learn(&happened);
        Ok(())
    }

    /// Files in `dir` that somebody closes are something that happens.
    pub(super) fn watch_closed(&mut self, dir: &Path) {
        self.events.watch_closed(&[dir]);
    }

    /// Devices that come are something that happens from now on; true if they were
    /// not before.
    pub(super) fn listen_to_devices(&mut self) -> bool {
        self.events.listen_to_kernel_devices()
    }

    /// Learn what the kernel said while only the child was listened to.
    pub(super) fn catch_up(&mut self) -> anyhow::Result<()> {
        let kernel = self.events.kernel_lines()?;
        self.learn(&Happened { kernel, ..Happened::default() });
        Ok(())
    }

    fn learn(&mut self, happened: &Happened) {
        self.is_stopped |= happened.stop;
        for line in &happened.kernel {
            cause::learn(&mut self.facts, line.level, &line.text);
        }
    }

    /// What could not be listened to, one line each.
    pub(super) fn into_problems(self) -> Vec<String> {
        self.events.problems
    }
}

/// Who may act at the PF.
pub(super) enum Turn {
    /// We, with the lock where one could be taken.
    Ours(Option<Held>),
    /// Another process is at work there.
    Busy(Finding),
}

/// Take our turn at `pf` without waiting. Why it is taken without a lock is added to
/// `problems`.
pub(super) fn try_take_turn(
    pf: PciAddress,
    locks: Option<&Locks>,
    problems: &mut Vec<String>,
) -> Turn {
    let Some(locks) = locks else { return Turn::Ours(None) };
    match locks.try_take(&format!("pf-{pf}")) {
        Ok(held) => Turn::Ours(Some(held)),
        Err(LockError::Busy { owner }) => {
            let lock = locks.dir().join(format!("pf-{pf}")).display().to_string();
            let who =
                owner.map_or_else(|| "an unknown process".to_owned(), |o| format!("process {o}"));
            let busy = Finding::error(Code::VfPlanBlocked, format!("{who} holds {lock}"));
            Turn::Busy(busy.about(pf).look(["journalctl -u 'ibprov-pf@*'"]))
        }
        Err(e) => {
            problems.push(format!("{e}: continuing without it"));
            Turn::Ours(None)
        }
    }
}

/// The same, one at a time: who is at work there is waited for until the deadline or a signal
/// comes, and who comes second then finds all done.
pub(super) fn take_turn(
    pf: PciAddress,
    locks: Option<&Locks>,
    watch: &mut Watch,
    problems: &mut Vec<String>,
) -> anyhow::Result<Turn> {
    let mut is_watched = false;
    loop {
        let turn = try_take_turn(pf, locks, problems);
        match (&turn, locks) {
            (Turn::Busy(_), Some(locks)) if !is_watched => {
                watch.watch_closed(locks.dir());
                is_watched = true;
                continue;
            }
            (Turn::Busy(_), _) if !watch.is_late() => {}
            _ => return Ok(turn),
        }
        watch.wait(clock::monotonic_usec() + RETRY_USEC)?;
    }
}
