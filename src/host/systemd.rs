//! Telling the service manager how a start goes (`sd_notify(3)`), and which of its
//! services this is.

use sd_notify::NotifyState;

use super::live_line;
use super::root::{ReadError, Root, answer};

/// The service that this process is part of, by its control group, as
/// `sd_pid_get_unit(3)` tells; none if it is not part of one.
///
/// # Errors
/// The kernel does not show the control group.
pub fn own_unit(root: &Root) -> Result<Option<String>, ReadError> {
    let groups = root.text("/proc/self/cgroup", 1 << 16)?;
    let path = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        matches!(controllers, "" | "name=systemd").then_some(path)
    });
    let unit = path.and_then(|path| path.rsplit('/').next());
    Ok(unit.filter(|unit| unit.ends_with(".service")).map(str::to_owned))
}

/// One line for `systemctl status`, or for the terminal of who runs the program by hand.
/// A manager that does not take it is no reason to stop.
pub fn tell_status(line: &str) {
    live_line::show(line);
    tell("the status", &[NotifyState::Status(line)]);
}

/// The start is over: what is ordered after this unit may begin. With the line
/// for `systemctl status`.
pub fn tell_ready(line: &str) {
    tell("that the start is over", &[NotifyState::Ready, NotifyState::Status(line)]);
}

/// Ask for `seconds` more before TimeoutStartSec ends the start: the unit's own
/// limit is only for an ibprov that hangs, the deadline is ours.
pub fn tell_deadline(seconds: u64) {
    let usec = u32::try_from(seconds.saturating_mul(1_000_000)).unwrap_or(u32::MAX);
    tell("the deadline", &[NotifyState::ExtendTimeoutUsec(usec)]);
}

/// Send to the socket that systemd has named, if it has.
fn tell(what: &str, states: &[NotifyState<'_>]) {
    if let Err(e) = sd_notify::notify(states) {
        let socket = std::env::var("NOTIFY_SOCKET").unwrap_or_default();
        tracing::debug!(cause = %answer(&e), "cannot tell systemd {what}: {socket}: {}", answer(&e));
    }
}
