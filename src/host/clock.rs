//! Time as the kernel log and systemd tell it, and waiting until it.

use std::io;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};

/// A duration in microseconds; one that is too long for them is endless, and
/// can still be added to a time.
pub fn usec(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 4)
}

/// Microseconds of CLOCK_MONOTONIC, the clock of the journal's
/// `_SOURCE_MONOTONIC_TIMESTAMP` and of systemd's `*Monotonic` properties.
pub fn monotonic_usec() -> u64 {
    usec_of(ClockId::CLOCK_MONOTONIC)
}

/// Microseconds since the start of the system, also those in which it slept: the clock of the
/// times in `/proc/PID/stat`.
pub(super) fn boottime_usec() -> u64 {
    usec_of(ClockId::CLOCK_BOOTTIME)
}

fn usec_of(clock: ClockId) -> u64 {
    // These clocks cannot fail on Linux (clock_gettime(2)).
    clock_gettime(clock).map_or(0, |t| {
        let seconds = u64::try_from(t.tv_sec()).unwrap_or_default();
        let nanos = u64::try_from(t.tv_nsec()).unwrap_or_default();
        seconds * 1_000_000 + nanos / 1000
    })
}

/// Seconds since 1970, by the clock of the day.
pub fn unix_seconds() -> u64 {
    usec_of(ClockId::CLOCK_REALTIME) / 1_000_000
}

/// How long a `poll(2)` may wait until `until_usec` of CLOCK_MONOTONIC. Rounded up
/// to milliseconds, or the last one before a deadline would spin; zero once it has
/// passed.
pub fn poll_timeout(until_usec: u64) -> PollTimeout {
    let left = until_usec.saturating_sub(monotonic_usec());
    let millis = i32::try_from(left.div_ceil(1000)).unwrap_or(i32::MAX);
    PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
}

/// Waits until something can be read: which of `fds`, in their order. None of them once
/// `until_usec` of CLOCK_MONOTONIC has passed, and after a signal that is caught.
///
/// # Errors
/// poll(2) fails.
pub(super) fn readable(fds: &[BorrowedFd<'_>], until_usec: u64) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    match poll(&mut polled, poll_timeout(until_usec)) {
        Ok(_) => Ok(polled.iter().map(|fd| fd.any().unwrap_or(true)).collect()),
        Err(Errno::EINTR) => Ok(vec![false; fds.len()]),
        Err(e) => Err(e.into()),
    }
}

/// Wait until `until_usec` of CLOCK_MONOTONIC: for what there is no event of that could be
/// waited for.
#[allow(clippy::disallowed_methods, reason = "the caller looks at files, which tell of no change")]
pub fn sleep_until(until_usec: u64) {
    let left = until_usec.saturating_sub(monotonic_usec());
    std::thread::sleep(std::time::Duration::from_micros(left));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_moment_before_a_deadline_is_waited_for() {
        assert_eq!(poll_timeout(0), PollTimeout::ZERO);
        assert_eq!(poll_timeout(monotonic_usec() - 1), PollTimeout::ZERO);
        assert_eq!(poll_timeout(monotonic_usec() + 60_000_000), PollTimeout::from(60_000_u16));
        assert_eq!(poll_timeout(u64::MAX), PollTimeout::MAX);
    }
}
