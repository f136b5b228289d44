//! One at a time at a PF: who comes second waits, and then finds all done.

use super::Purpose;
use super::watch::Watch;
use crate::host::clock;
use crate::host::lock::{Held, LockError, Locks, RETRY_USEC};
use crate::names::PciAddress;
use crate::report::pf::PfProblem;

/// Who may act at the PF.
pub(super) enum Turn {
    /// We, with the lock where one could be taken.
    Ours(Option<Held>),
    /// Somebody is at it, and there is no need to wait.
    Another,
    /// The deadline or a signal came first.
    Never(PfProblem),
}

/// Wait for our turn at `pf`. Why it is taken without a lock is added to `problems`.
pub(super) fn take(
    pf: PciAddress,
    purpose: Purpose,
    locks: Option<&Locks>,
    watch: &mut Watch,
    problems: &mut Vec<String>,
) -> anyhow::Result<Turn> {
    let Some(locks) = locks else { return Ok(Turn::Ours(None)) };
    let mut is_watched = false;
    loop {
        match locks.try_take(&format!("pf-{pf}")) {
            Ok(held) => return Ok(Turn::Ours(Some(held))),
            Err(LockError::Busy { .. }) if purpose == Purpose::Undo => return Ok(Turn::Another),
            Err(LockError::Busy { .. }) if !is_watched => {
                watch.watch_closed(locks.dir());
                is_watched = true;
                continue;
            }
            Err(LockError::Busy { owner }) => {
                if watch.is_late() {
                    let lock = locks.dir().join(format!("pf-{pf}")).display().to_string();
                    return Ok(Turn::Never(PfProblem::Busy { lock, owner }));
                }
            }
            Err(e) => {
                problems.push(format!("{e}: continuing without it"));
                return Ok(Turn::Ours(None));
            }
        }
        watch.wait(clock::monotonic_usec() + RETRY_USEC)?;
    }
}
