//! Time as the kernel log and systemd tell it.

use nix::time::{ClockId, clock_gettime};

/// Microseconds of CLOCK_MONOTONIC, the clock of the journal's
/// `_SOURCE_MONOTONIC_TIMESTAMP` and of systemd's `*Monotonic` properties.
#[must_use]
pub fn monotonic_usec() -> u64 {
    // CLOCK_MONOTONIC cannot fail on Linux (clock_gettime(2)).
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| {
        let seconds = u64::try_from(t.tv_sec()).unwrap_or_default();
        let nanos = u64::try_from(t.tv_nsec()).unwrap_or_default();
        seconds * 1_000_000 + nanos / 1000
    })
}
