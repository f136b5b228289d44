//! Whether somebody asked for a netdev before it was there.

use super::super::pattern::{caught_one, has_any};
use super::{Event, Kind};

/// The interface of the line in which a network service did not find it.
pub fn not_found(event: &Event) -> Option<&str> {
    if let Kind::InterfaceAsked { name, worked: Some(false) } = &event.kind
        && has_any(
            &event.text,
            &["does not seem to be present", "not present", "Cannot find device"],
        )
    {
        return Some(name);
    }
    for pattern in [
        "Device {} does not seem to be present",
        "Cannot find device \"{}\"",
        "Cannot find device '{}'",
        "Device \"{}\" does not exist",
        "device {} not present",
        "interface {} does not exist",
        "{}: error fetching interface information: Device not found",
        "{}: interface does not exist",
    ] {
        if let Some(name) = caught_one(&event.text, pattern) {
            let name = name.rsplit(' ').next().unwrap_or(name);
            if !name.is_empty() && name.len() < 16 {
                return Some(name);
            }
        }
    }
    None
}

/// Words of the lines that [`not_found`] knows.
pub const NOT_FOUND: &[&str] = &[
    "does not seem to be present",
    "Cannot find device",
    "does not exist",
    "not present",
    "error fetching interface information",
];

/// Whether a netdev came too late for who asked for it. `found` is what the asker
/// says: whether it was there; `None` if it says neither. `gap` is the time from the
/// ask to the netdev's coming in microseconds, negative if that came first.
///
/// An asker that did not find what was there already came for another reason: the
/// netdev had another name, or something else was wrong. Logs of whole seconds can
/// have both in the same one; then the asker's word counts.
pub const fn came_too_late(found: Option<bool>, gap: i64) -> bool {
    match found {
        Some(true) => false,
        Some(false) => gap >= 0,
        None => gap > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::came_too_late;

    #[test]
    fn the_askers_word_counts_within_the_same_second() {
        for (found, gap, late) in [
            (Some(false), 1, true),
            (Some(false), 0, true),
            (Some(false), -1, false),
            (None, 1, true),
            (None, 0, false),
            (Some(true), 1, false),
        ] {
            assert_eq!(came_too_late(found, gap), late, "{found:?} {gap}");
        }
    }
}
