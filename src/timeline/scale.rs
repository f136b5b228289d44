//! From moments to places: a linear axis in which very long stretches without
//! any event are cut out; and how moments and durations are called.

use std::time::Duration;

use crate::model::seconds;
use crate::names::usec;

/// A stretch that is cut out must be so many times longer than all the rest.
const CUT_RATIO: u32 = 20;

/// More cuts would make it no axis any more.
const CUTS: usize = 3;

/// From moments to places between 0 and [`Scale::width`].
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    width: f64,
    /// What is drawn to scale: from, to, where it begins.
    pieces: Vec<(Duration, Duration, f64)>,
    /// Width of one microsecond.
    unit: f64,
    cut: f64,
}

impl Scale {
    /// For these moments (sorted), over `width`, a cut being `cut` wide.
    pub fn new(moments: &[Duration], width: f64, cut: f64) -> Self {
        let first = moments.first().copied().unwrap_or_default();
        let last = moments.last().copied().unwrap_or_default();
        let mut spans: Vec<(Duration, Duration)> = moments
            .iter()
            .zip(moments.iter().skip(1))
            .map(|(from, to)| (*from, *to))
            .filter(|(from, to)| to > from)
            .collect();
        spans.sort_by_key(|(from, to)| std::cmp::Reverse(*to - *from));
        let mut rest = last - first;
        let mut cuts = Vec::new();
        for (from, to) in spans.into_iter().take(CUTS) {
            let others = rest - (to - from);
            if others.is_zero() || (to - from) / CUT_RATIO < others {
                break;
            }
            rest = others;
            cuts.push((from, to));
        }
        cuts.sort_unstable();

        let drawn = (width - cut * count(cuts.len())).max(0.0);
        // One moment alone has the whole width to itself.
        let unit = drawn / to_f64(rest.max(Duration::from_micros(1)));
        let mut pieces = Vec::new();
        let (mut begin, mut place) = (first, 0.0);
        for (from, to) in cuts {
            pieces.push((begin, from, place));
            place += to_f64(from - begin) * unit + cut;
            begin = to;
        }
        pieces.push((begin, last, place));
        Self { width, pieces, unit, cut }
    }

    pub fn place(&self, at: Duration) -> f64 {
        let mut place = 0.0;
        for (from, to, begin) in &self.pieces {
            if at < *from {
                // In a cut: its middle.
                return if *begin > 0.0 { begin - self.cut / 2.0 } else { 0.0 };
            }
            place = begin + to_f64(at.min(*to) - *from) * self.unit;
            if at <= *to {
                break;
            }
        }
        place.min(self.width)
    }

    /// Where the axis is cut, and how much is left out.
    pub fn cuts(&self) -> Vec<(f64, Duration)> {
        self.pieces
            .iter()
            .zip(self.pieces.iter().skip(1))
            .map(|((_, to, _), (from, _, at))| (at - self.cut / 2.0, *from - *to))
            .collect()
    }

    /// Round moments for the axis, not closer than `apart`, with their places.
    pub fn ticks(&self, apart: f64, offset: Duration) -> Vec<(f64, Duration)> {
        let step = step(apart / self.unit);
        let mut ticks: Vec<(f64, Duration)> = Vec::new();
        for (from, to, _) in &self.pieces {
            let over = Duration::from_micros(usec(*from + offset) % usec(step));
            let mut at = if over.is_zero() { *from } else { *from + step - over };
            while at <= *to {
                let place = self.place(at);
                if ticks.last().is_none_or(|(last, _)| place - last >= apart * 0.8) {
                    ticks.push((place, at));
                }
                at += step;
            }
        }
        ticks
    }
}

/// The least round time span that is not shorter than `at_least` microseconds.
fn step(at_least: f64) -> Duration {
    let seconds = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200];
    let round = [1, 2, 5, 10, 20, 50, 100, 200, 500]
        .into_iter()
        .map(Duration::from_millis)
        .chain(seconds.map(Duration::from_secs))
        .find(|span| to_f64(*span) >= at_least);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of days")]
    round.unwrap_or_else(|| DAY * ((at_least / to_f64(DAY)).ceil().clamp(1.0, 1e6) as u32))
}

#[allow(clippy::cast_precision_loss, reason = "a picture has no 2^52 places")]
fn to_f64(span: Duration) -> f64 {
    span.as_micros() as f64
}

#[allow(clippy::cast_precision_loss, reason = "a picture has no 2^52 rows")]
pub(super) fn count(n: usize) -> f64 {
    n as f64
}

/// What zero of the time scale is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Clock {
    /// The kernel's start: times are CLOCK_MONOTONIC.
    #[default]
    SinceBoot,
    /// A moment of the day, as logs have it.
    Wall {
        /// The time since midnight at zero.
        since_midnight: Duration,
        /// The date, as the log writes it (`Mar 18`).
        date: String,
    },
}

const DAY: Duration = Duration::from_secs(86_400);

impl Clock {
    /// A moment as people read it: `10:29:53`, or `12.345 s`.
    pub fn moment(&self, at: Duration) -> String {
        match self {
            Self::SinceBoot => seconds(at),
            Self::Wall { since_midnight, .. } => {
                let total = since_midnight.saturating_add(at).as_secs();
                let (days, second) = (total / DAY.as_secs(), total % DAY.as_secs());
                let time =
                    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
                if days == 0 { time } else { format!("{time} (+{days} d)") }
            }
        }
    }

    /// The time since midnight at zero; zero if that is not known.
    pub const fn since_midnight(&self) -> Duration {
        match self {
            Self::SinceBoot => Duration::ZERO,
            Self::Wall { since_midnight, .. } => *since_midnight,
        }
    }

    /// A round moment, for an axis.
    pub fn tick(&self, at: Duration) -> String {
        match self {
            Self::SinceBoot if at.subsec_nanos() == 0 => format!("{} s", at.as_secs()),
            Self::SinceBoot => {
                let text = format!("{}.{:03}", at.as_secs(), at.subsec_millis());
                format!("{} s", text.trim_end_matches('0'))
            }
            Self::Wall { .. } => self.moment(at),
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

    const S: Duration = Duration::from_secs(1);
    const FOUR_DAYS: Duration = Duration::from_secs(4 * 86_400);

    #[test]
    fn the_long_wait_is_shown_and_the_four_days_are_cut_out() {
        let scale =
            Scale::new(&[Duration::ZERO, 2 * S, 12 * S, 92 * S, 93 * S, FOUR_DAYS], 1000.0, 60.0);
        assert!(scale.place(92 * S) - scale.place(12 * S) > 750.0);
        assert_eq!(scale.cuts().len(), 1);
        assert!((scale.place(FOUR_DAYS) - 1000.0).abs() < 1e-6);
        assert!(
            (scale.place(FOUR_DAYS / 2) - 970.0).abs() < 1e-6,
            "{}",
            scale.place(FOUR_DAYS / 2)
        );
        assert_eq!(scale.ticks(100.0, Duration::ZERO).first(), Some(&(0.0, Duration::ZERO)));
    }

    #[test]
    fn no_moment_and_one_moment_are_no_trouble() {
        assert!(Scale::new(&[], 80.0, 3.0).place(S) <= 80.0);
        assert!(Scale::new(&[S], 80.0, 3.0).place(S).abs() < 1e-9);
        assert!(Scale::new(&[S], 80.0, 3.0).ticks(10.0, Duration::ZERO).len() <= 1);
    }

    proptest::proptest! {
        #[test]
        fn later_is_never_further_left(mut moments in proptest::collection::vec(0..=u64::MAX, 0..20)) {
            moments.sort_unstable();
            moments.dedup();
            let moments: Vec<Duration> = moments.into_iter().map(Duration::from_micros).collect();
            let scale = Scale::new(&moments, 900.0, 40.0);
            let places: Vec<f64> = moments.iter().map(|m| scale.place(*m)).collect();
            for pair in places.windows(2) {
                proptest::prop_assert!(pair[0] <= pair[1] + 1e-6, "{places:?}");
            }
            proptest::prop_assert!(places.iter().all(|p| (-1e-6..=900.001).contains(p)), "{places:?}");
            let ticks = scale.ticks(60.0, Duration::from_micros(12_345_678));
            proptest::prop_assert!(ticks.len() < 30, "{ticks:?}");
        }
    }

    #[test]
    fn moments_of_a_log_are_times_of_the_day() {
        let clock =
            Clock::Wall { since_midnight: Duration::from_secs(86_390), date: "Mar 18".to_owned() };
        assert_eq!(clock.moment(Duration::ZERO), "23:59:50");
        assert_eq!(clock.moment(15 * S), "00:00:05 (+1 d)");
        assert_eq!(
            clock.moment(Duration::from_micros(u64::MAX)).len(),
            "00:00:00 (+213503982 d)".len()
        );
        assert_eq!(Clock::SinceBoot.moment(Duration::from_millis(1500)), "1.500 s");
    }
}
