//! Time spans as systemd reads and writes them: `2min 30s`.

use std::fmt;
use std::time::Duration;

/// The most that can be set as a timeout, seconds.
pub const LONGEST_SEC: u64 = 3600;

/// Prints a duration as systemd does (`format_timespan()` in
/// `src/basic/time-util.c`): `2min 30s`, `1s 500ms`, `0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSpan(pub Duration);

/// In microseconds, the largest first, each under the name it is printed by.
const PRINTED: &[(&str, u128)] =
    &[("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_micros();
        if rest == 0 {
            return f.write_str("0");
        }
        let mut gap = "";
        for (unit, size) in PRINTED {
            let count = rest / size;
            rest %= size;
            if count > 0 {
                write!(f, "{gap}{count}{unit}")?;
                gap = " ";
            }
        }
        Ok(())
    }
}

/// Reads `240s`, `4min`, `2min 30s`, `1h`, `1500ms`; a bare number is seconds.
///
/// `None` if it is no time span or too large to count.
pub fn parse(text: &str) -> Option<Duration> {
    let mut total: u64 = 0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, after) = split_while(rest, |c| c.is_ascii_digit());
        let (unit, after) = split_while(after.trim_start(), |c| c.is_ascii_alphabetic());
        let size: u64 = match unit {
            "us" | "usec" => 1,
            "ms" | "msec" => 1_000,
            "" | "s" | "sec" | "second" | "seconds" => 1_000_000,
            "m" | "min" | "minute" | "minutes" => 60_000_000,
            "h" | "hr" | "hour" | "hours" => 3_600_000_000,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(size)?)?;
        rest = after.trim_start();
    }
    Some(Duration::from_micros(total))
}

fn split_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    let at = text.find(|c| !keep(c)).unwrap_or(text.len());
    text.split_at(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn usual_spellings_are_read() {
        for (text, seconds) in [
            ("240", 240),
            ("240s", 240),
            ("4min", 240),
            ("4 min", 240),
            ("2min 30s", 150),
            ("2min30s", 150),
            ("1h", 3600),
            (" 1 hour 1 second ", 3601),
        ] {
            assert_eq!(parse(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("1500ms"), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn what_is_no_time_span_is_refused() {
        for text in
            ["", " ", "s", "-1s", "1.5s", "4 fortnights", "infinity", "99999999999999999999"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("18446744073709551615h"), None);
    }

    #[test]
    fn printing_is_systemd_s() {
        let text = |ms| TimeSpan(Duration::from_millis(ms)).to_string();
        assert_eq!(text(150_000), "2min 30s");
        assert_eq!(text(240_000), "4min");
        assert_eq!(text(3_600_000), "1h");
        assert_eq!(text(1_500), "1s 500ms");
        assert_eq!(text(0), "0");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(us in 0_u64..100_000_000_000_000) {
            let span = Duration::from_micros(us);
            prop_assert_eq!(parse(&TimeSpan(span).to_string()), Some(span));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _read = parse(&text);
        }
    }
}
