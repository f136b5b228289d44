//! Time as the kernel log and systemd tell it, and waiting until it.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};

use crate::names::{Moment, usec};

/// The present, by CLOCK_MONOTONIC.
pub fn now() -> Moment {
    Moment::from_usec(usec(since_zero(ClockId::CLOCK_MONOTONIC)))
}

/// The time since the start of the system, also that in which it slept: the clock of the
/// times in `/proc/PID/stat`.
pub(super) fn since_boot() -> Duration {
    since_zero(ClockId::CLOCK_BOOTTIME)
}

fn since_zero(clock: ClockId) -> Duration {
    // These clocks cannot fail on Linux (clock_gettime(2)).
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

/// Seconds since 1970, by the clock of the day.
pub fn unix_seconds() -> u64 {
    since_zero(ClockId::CLOCK_REALTIME).as_secs()
}

/// How long a `poll(2)` may wait until `until`. Rounded up to milliseconds, or the last one
/// before a deadline would spin; zero once it has passed.
pub fn poll_timeout(until: Moment) -> PollTimeout {
    let millis = until.since(now()).as_micros().div_ceil(1000);
    PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
}

/// Waits until something can be read: which of `fds`, in their order. None of them once
/// `until` has passed, and after a signal that is caught.
///
/// # Errors
/// poll(2) fails.
pub(super) fn readable(fds: &[BorrowedFd<'_>], until: Moment) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    match poll(&mut polled, poll_timeout(until)) {
        Ok(_) => Ok(polled.iter().map(|fd| fd.any().unwrap_or(true)).collect()),
        Err(Errno::EINTR) => Ok(vec![false; fds.len()]),
        Err(e) => Err(e.into()),
    }
}

/// Wait until `until`: for what there is no event of that could be waited for.
#[allow(clippy::disallowed_methods, reason = "the caller looks at files, which tell of no change")]
pub fn sleep_until(until: Moment) {
    std::thread::sleep(until.since(now()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_moment_before_a_deadline_is_waited_for() {
        assert_eq!(poll_timeout(Moment::START), PollTimeout::ZERO);
        assert_eq!(poll_timeout(now() - Duration::from_micros(1)), PollTimeout::ZERO);
        let minute = now() + Duration::from_secs(60);
        assert_eq!(poll_timeout(minute), PollTimeout::from(60_000_u16));
        assert_eq!(poll_timeout(Moment::NEVER), PollTimeout::MAX);
    }
}
