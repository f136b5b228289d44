//! One at a time at a PF: who comes second waits, and then finds all done.

use super::watch::Watch;
use crate::host::clock;
use crate::host::lock::{Held, LockError, Locks, RETRY_USEC};
use crate::names::PciAddress;
use crate::report::pf::PfProblem;

/// Who may act at the PF.
pub(super) enum Turn {
    /// We, with the lock where one could be taken.
    Ours(Option<Held>),
    /// Another process is at work there.
    Busy(PfProblem),
}

/// Take our turn at `pf` without waiting. Why it is taken without a lock is added to
/// `problems`.
pub(super) fn try_take(pf: PciAddress, locks: Option<&Locks>, problems: &mut Vec<String>) -> Turn {
    let Some(locks) = locks else { return Turn::Ours(None) };
    match locks.try_take(&format!("pf-{pf}")) {
        Ok(held) => Turn::Ours(Some(held)),
        Err(LockError::Busy { owner }) => {
            let lock = locks.dir().join(format!("pf-{pf}")).display().to_string();
            Turn::Busy(PfProblem::Busy { lock, owner })
        }
        Err(e) => {
            problems.push(format!("{e}: continuing without it"));
            Turn::Ours(None)
        }
    }
}

/// The same; who is at work there is waited for until the deadline or a signal comes.
pub(super) fn take(
    pf: PciAddress,
    locks: Option<&Locks>,
    watch: &mut Watch,
    problems: &mut Vec<String>,
) -> anyhow::Result<Turn> {
    let mut is_watched = false;
    loop {
        let turn = try_take(pf, locks, problems);
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
