//! Telling the service manager how a start goes (`sd_notify(3)`).

use sd_notify::NotifyState;

/// One line for `systemctl status`.
///
/// # Errors
/// The notification socket that systemd named cannot be written.
pub fn status(line: &str) -> std::io::Result<()> {
    sd_notify::notify(&[NotifyState::Status(line)])
}

/// The start is over: what is ordered after this unit may begin. With the line
/// for `systemctl status`.
///
/// # Errors
/// As [`status`].
pub fn ready(line: &str) -> std::io::Result<()> {
    sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(line)])
}

/// Ask for `seconds` more before TimeoutStartSec ends the start: the unit's own
/// limit is only for an ibprov that hangs, the deadline is ours.
///
/// # Errors
/// As [`status`].
pub fn extend_start(seconds: u64) -> std::io::Result<()> {
    let usec = u32::try_from(seconds.saturating_mul(1_000_000)).unwrap_or(u32::MAX);
    sd_notify::notify(&[NotifyState::ExtendTimeoutUsec(usec)])
}
