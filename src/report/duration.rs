//! Durations as people read them.

/// Microseconds as seconds with milliseconds: `0.312 s`.
#[must_use]
pub fn seconds(usec: u64) -> String {
    let millis = usec / 1000;
    format!("{}.{:03} s", millis / 1000, millis % 1000)
}
