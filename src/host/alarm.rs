//! The alarm that ends a run of a unit which hangs (`alarm(2)`, SIGALRM), so that the unit fails
//! and nothing waits for it any longer.
//!
//! The units have `TimeoutStartSec=infinity`: when systemd reads its units again it forgets what
//! a service has asked for by EXTEND_TIMEOUT_USEC, and counts the limit of the unit from the
//! start (`service_coldplug_timeout()`, src/core/service.c). A process that sleeps
//! uninterruptibly outlasts an alarm as it would outlast systemd's signals, so that a main process
//! leaves what may sleep so to a child.

use std::time::Duration;

use nix::unistd::alarm;

/// Time from the first instruction until the deadline is known.
const BEGIN: Duration = Duration::from_secs(30);

/// Time beyond the deadline, in which the run leaves its report.
const GRACE: Duration = Duration::from_secs(10);

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
}

fn set(limit: Duration) {
    if is_of_unit() {
        alarm::set(limit.as_secs().try_into().unwrap_or(u32::MAX));
    }
}

/// True if systemd has started this process itself, as a program of a unit: INVOCATION_ID
/// (systemd.exec(5)) is inherited by what a program starts. A child of this process has no alarm
/// (fork(2)), and its parent waits for it no longer than until its own deadline.
fn is_of_unit() -> bool {
    std::os::unix::process::parent_id() == 1 && std::env::var_os("INVOCATION_ID").is_some()
}
