//! The alarm that ends a run of a unit which hangs (`alarm(2)`, SIGALRM), so that the unit fails
//! and nothing waits for it any longer.
//!
//! The units have `TimeoutStartSec=infinity`: when systemd reads its units again it forgets what
//! a service has asked for by EXTEND_TIMEOUT_USEC, and counts the limit of the unit from the
//! start (`service_coldplug_timeout()`, src/core/service.c). A process that sleeps
//! uninterruptibly outlasts an alarm as it would outlast systemd's signals, so that a main process
//! leaves what may sleep so to a child.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::unistd::alarm;

use super::clock;
use crate::names::Moment;

/// Time from the first instruction until the deadline is known.
const BEGIN: Duration = Duration::from_secs(30);

/// Time beyond the deadline, in which the run leaves its report.
const GRACE: Duration = Duration::from_secs(10);

/// Of that, the time that is left when the last question to systemd ends.
const REPORT: Duration = Duration::from_secs(8);

/// When the alarm ends this process, as [`Moment::usec`].
static DUE: AtomicU64 = AtomicU64::new(Moment::NEVER.usec());

/// Sets the alarm for a run that does not know its deadline yet.
pub fn begin() {
    set(BEGIN);
}

/// Sets the alarm anew, for a run that ends by itself after `limit`.
pub fn at_deadline(limit: Duration) {
    set(limit.saturating_add(GRACE));
}

/// Cancels the alarm, for a run that no start waits for.
pub fn cancel() {
    alarm::cancel();
    DUE.store(Moment::NEVER.usec(), Ordering::Relaxed);
}

fn set(limit: Duration) {
    if is_of_unit() {
        alarm::set(limit.as_secs().try_into().unwrap_or(u32::MAX));
        DUE.store((clock::now() + limit).usec(), Ordering::Relaxed);
    }
}

/// Until when a question may take that has until `until`: there is time for a report before
/// the alarm.
pub(super) fn before(until: Moment) -> Moment {
    before_alarm(Moment::from_usec(DUE.load(Ordering::Relaxed)), until)
}

fn before_alarm(due: Moment, until: Moment) -> Moment {
    until.min(due - REPORT)
}

/// True if systemd has started this process itself, as a program of a unit: INVOCATION_ID
/// (systemd.exec(5)) is inherited by what a program starts. A child of this process has no alarm
/// (fork(2)), and its parent waits for it no longer than until its own deadline.
pub fn is_of_unit() -> bool {
    std::os::unix::process::parent_id() == 1 && std::env::var_os("INVOCATION_ID").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_ends_in_time_for_a_report_before_the_alarm() {
        let at = |sec| Moment::START + Duration::from_secs(sec);
        assert_eq!(before_alarm(Moment::NEVER, at(20)), at(20), "no alarm is set");
        assert_eq!(before_alarm(at(60), at(20)), at(20));
        assert_eq!(before_alarm(at(20), at(20)), at(12));
        assert_eq!(before_alarm(at(7), at(20)), at(0));
    }
}
