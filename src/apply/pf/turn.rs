//! One at a time at a PF: who comes second waits, and then finds all done.

use super::Purpose;
use super::watch::Watch;
use crate::host::clock;
use crate::host::lock::{Held, LockError, Locks, RETRY_USEC};
use crate::names::PciAddress;

/// Who may act at the PF.
pub(super) enum Turn {
    /// We, with the lock where one could be taken.
    Ours(Option<Held>),
    /// Somebody is at it, and there is no need to wait.
    Another,
    /// The deadline or a signal came first.
    Never,
}

/// Wait for our turn at `pf`. Why it is taken without a lock, or never came, is
/// added to `problems`.
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
            Err(e @ LockError::Busy { .. }) => {
                if watch.is_late() {
                    problems.push(format!(
                        "{}/pf-{pf} was {e}, or by a child that it left, until the deadline",
                        locks.dir().display(),
                    ));
                    return Ok(Turn::Never);
                }
            }
            Err(e) => {
                problems.push(format!("{e}: working without it"));
                return Ok(Turn::Ours(None));
            }
        }
        watch.wait(clock::monotonic_usec() + RETRY_USEC)?;
    }
}
