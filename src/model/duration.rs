//! Durations and times as people read them.

use std::time::Duration;

/// As seconds with milliseconds: `0.312 s`.
pub fn seconds(span: Duration) -> String {
    format!("{}.{:03} s", span.as_secs(), span.subsec_millis())
}

/// A duration as people read it: `0.312 s`, `80 s`, `4 d 6 h`. Two units at
/// most; below ten seconds with milliseconds, unless those are zero.
pub fn duration(span: Duration) -> String {
    let whole = span.as_secs();
    let two = |big: u64, big_unit: &str, small: u64, small_unit: &str| {
        if small == 0 {
            format!("{big} {big_unit}")
        } else {
            format!("{big} {big_unit} {small} {small_unit}")
        }
    };
    match whole {
        0..=9 if span.subsec_nanos() > 0 => seconds(span),
        0..=299 => format!("{whole} s"),
        300..=3599 => two(whole / 60, "min", whole % 60, "s"),
        3600..=86_399 => two(whole / 3600, "h", whole / 60 % 60, "min"),
        _ => two(whole / 86_400, "d", whole / 3600 % 24, "h"),
    }
}

/// Seconds since 1970 as a time of the day in UTC: `2026-11-21 08:17:48`.
pub fn utc(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant's civil_from_days, for days after 1970.
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let of_era_year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * of_era_year + of_era_year / 4 - of_era_year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = of_era_year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let all = [0, 312, 2_000, 9_999, 80_000, 305_000, 4 * 3_600_000]
            .map(|millis| duration(Duration::from_millis(millis)));
        assert_eq!(all, ["0 s", "0.312 s", "2 s", "9.999 s", "80 s", "5 min 5 s", "4 h"]);
        assert_eq!(duration(Duration::from_secs(102 * 3600 + 1500)), "4 d 6 h");
        assert!(!duration(Duration::MAX).is_empty());
    }
}
