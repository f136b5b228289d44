//! Instants of the clock by which the parts of a boot are compared.

use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant of CLOCK_MONOTONIC, in microseconds since the start of the system: the clock of
/// systemd's `*Monotonic` properties, of the kernel log, and of the journal's
/// `_SOURCE_MONOTONIC_TIMESTAMP`, so that what they say can be compared with what we saw.
///
/// Instants come from reports and logs too, where they may be any number: sums and differences
/// end at the limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline, description = ""))]
pub struct Moment(u64);

impl Moment {
    /// The start of the system: what is due then is due at once.
    pub const START: Self = Self(0);
    /// The end of what has no deadline.
    pub const NEVER: Self = Self(u64::MAX);

    pub const fn from_usec(usec: u64) -> Self {
        Self(usec)
    }

    /// An instant as systemd has it in `*Monotonic` properties, where 0 is for what has not
    /// happened.
    pub const fn of_systemd(usec: u64) -> Option<Self> {
        if usec == 0 { None } else { Some(Self(usec)) }
    }

    pub const fn usec(self) -> u64 {
        self.0
    }

    /// The time from `earlier` until this instant; zero if that is not earlier.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(usec(span)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(usec(span)))
    }
}

/// A time span in microseconds, as reports and systemd have it; one that is too long for them is
/// endless.
pub fn usec(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// An instant of a test.
#[cfg(test)]
pub const fn at(usec: u64) -> Moment {
    Moment::from_usec(usec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_instant_is_beyond_the_limits() {
        let (start, early) = (Moment::START, at(7));
        assert_eq!(early + Duration::MAX, Moment::NEVER);
        assert_eq!(Moment::NEVER + Duration::from_micros(1), Moment::NEVER);
        assert_eq!(early - Duration::from_secs(1), start);
        assert_eq!(Moment::NEVER - Duration::MAX, start);
        assert_eq!(early.since(Moment::NEVER), Duration::ZERO);
        assert_eq!(Moment::NEVER.since(start), Duration::from_micros(u64::MAX));
        assert_eq!(early + Duration::from_nanos(2_999), at(9));
    }
}
