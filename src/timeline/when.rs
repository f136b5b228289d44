//! How moments and durations are called.

use crate::report::duration::seconds;

/// What zero of the time scale is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Clock {
    /// The kernel's start: times are CLOCK_MONOTONIC.
    #[default]
    SinceBoot,
    /// A moment of the day, as logs have it.
    Wall {
        /// Microseconds since midnight at zero.
        day_usec: u64,
        /// The date, as the log writes it (`Mar 18`).
        date: String,
    },
}

const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;

impl Clock {
    /// A moment as people read it: `10:29:53`, or `12.345 s`.
    pub fn moment(&self, usec: u64) -> String {
        match self {
            Self::SinceBoot => seconds(usec),
            Self::Wall { day_usec, .. } => {
                let total = (day_usec % DAY).saturating_add(usec);
                let (days, second) = (total / DAY, total % DAY / SECOND);
                let time =
                    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
                if days == 0 { time } else { format!("{time} (+{days} d)") }
            }
        }
    }

    /// Microseconds since midnight at zero; zero if that is not known.
    pub const fn day_usec(&self) -> u64 {
        match self {
            Self::SinceBoot => 0,
            Self::Wall { day_usec, .. } => *day_usec % DAY,
        }
    }

    /// A round moment, for an axis.
    pub fn tick(&self, usec: u64) -> String {
        match self {
            Self::SinceBoot if usec.is_multiple_of(SECOND) => format!("{} s", usec / SECOND),
            Self::SinceBoot => {
                let text = format!("{}.{:03}", usec / SECOND, usec % SECOND / 1000);
                format!("{} s", text.trim_end_matches('0'))
            }
            Self::Wall { .. } => self.moment(usec),
        }
    }

    /// What the numbers of an axis are.
    pub fn legend(&self) -> &str {
        match self {
            Self::SinceBoot => "seconds since the start of the kernel",
            Self::Wall { date, .. } => date,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_a_log_are_times_of_the_day() {
        let clock = Clock::Wall { day_usec: 86_390 * SECOND, date: "Mar 18".to_owned() };
        assert_eq!(clock.moment(0), "23:59:50");
        assert_eq!(clock.moment(15 * SECOND), "00:00:05 (+1 d)");
        assert_eq!(clock.moment(u64::MAX).len(), "00:00:00 (+213503982 d)".len());
        assert_eq!(Clock::SinceBoot.moment(1_500_000), "1.500 s");
    }
}
