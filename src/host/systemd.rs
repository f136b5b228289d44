//! Telling the service manager how a start goes (`sd_notify(3)`), and which of its
//! services this is.

use sd_notify::NotifyState;

use super::root::{ReadError, Root};

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
