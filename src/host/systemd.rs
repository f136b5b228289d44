//! Telling the service manager how a start goes (`sd_notify(3)`), and which of its
//! services this is.

use sd_notify::NotifyState;

use super::alarm;
use super::live_line;
use super::root::{ReadError, Root, answer};

/// The service that this process is part of, by its control group, as
/// `sd_pid_get_unit(3)` tells; none if it is not part of one.
///
/// # Errors
/// The kernel does not show the control group.
pub fn own_unit(root: &Root) -> Result<Option<String>, ReadError> {
    let groups = root.text("/proc/self/cgroup", 1 << 16)?;
    Ok(unit_of(&groups).map(str::to_owned))
}

/// The service that `/proc/PID/cgroup` names. A host whose systemd is on cgroup v2 may have
/// systemd's hierarchy of v1 too, for containers, and its own processes at its root.
fn unit_of(groups: &str) -> Option<&str> {
    let mut units = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        matches!(controllers, "" | "name=systemd").then_some(path.rsplit('/').next()?)
    });
    units.find(|unit| unit.ends_with(".service"))
}

/// One line for `systemctl status`, or for the terminal of who runs the program by hand.
/// A manager that does not take it is no reason to stop.
pub fn tell_status(line: &str) {
    live_line::show(line);
    tell("the status", &[NotifyState::Status(line)]);
}

/// The start is over: what is ordered after this unit may begin, and nothing waits for this
/// process any longer. With the line for `systemctl status`.
pub fn tell_ready(line: &str) {
    alarm::cancel();
    tell("that the start is over", &[NotifyState::Ready, NotifyState::Status(line)]);
}

/// Send to the socket that systemd has named, if it has.
fn tell(what: &str, states: &[NotifyState<'_>]) {
    if let Err(e) = sd_notify::notify(states) {
        let socket = std::env::var("NOTIFY_SOCKET").unwrap_or_default();
        tracing::debug!(cause = %answer(&e), "cannot tell systemd {what}: {socket}: {}", answer(&e));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_ready_has_no_alarm() {
        nix::unistd::alarm::set(3600);
        tell_ready("ready");
        assert_eq!(nix::unistd::alarm::cancel(), None);
    }

    #[test]
    fn the_service_is_that_of_whichever_hierarchy_systemd_has() {
        let v1 = "3:cpu:/\n1:name=systemd:/system.slice/a.service\n0::/\n";
        let v2 = "1:name=systemd:/\n0::/system.slice/system-b.slice/b@c.service\n";
        assert_eq!(unit_of(v1), Some("a.service"));
        assert_eq!(unit_of(v2), Some("b@c.service"));
        assert_eq!(unit_of("0::/user.slice/user-0.slice/session-1.scope\n"), None);
    }
}
