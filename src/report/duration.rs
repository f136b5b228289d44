//! Durations as people read them.

const SECOND: u64 = 1_000_000;

/// Microseconds as seconds with milliseconds: `0.312 s`.
pub fn seconds(usec: u64) -> String {
    let millis = usec / 1000;
    format!("{}.{:03} s", millis / 1000, millis % 1000)
}

/// A duration as people read it: `0.312 s`, `80 s`, `4 d 6 h`. Two units at
/// most; below ten seconds with milliseconds, unless those are zero.
pub fn duration(usec: u64) -> String {
    let whole = usec / SECOND;
    let two = |big: u64, big_unit: &str, small: u64, small_unit: &str| {
        if small == 0 {
            format!("{big} {big_unit}")
        } else {
            format!("{big} {big_unit} {small} {small_unit}")
        }
    };
    match whole {
        0..=9 if !usec.is_multiple_of(SECOND) => seconds(usec),
        0..=299 => format!("{whole} s"),
        300..=3599 => two(whole / 60, "min", whole % 60, "s"),
        3600..=86_399 => two(whole / 3600, "h", whole / 60 % 60, "min"),
        _ => two(whole / 86_400, "d", whole / 3600 % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let all = [0, 312_000, 2 * SECOND, 9_999_999, 80 * SECOND, 305 * SECOND, 4 * 3600 * SECOND]
            .map(duration);
        assert_eq!(all, ["0 s", "0.312 s", "2 s", "9.999 s", "80 s", "5 min 5 s", "4 h"]);
        assert_eq!(duration((4 * 86_400 + 6 * 3600 + 1500) * SECOND), "4 d 6 h");
        assert!(!duration(u64::MAX).is_empty());
    }
}
