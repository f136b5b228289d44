//! When things happened to the guests of the scenario `guests`, for the tests
//! and the bench.

use std::time::Duration;

use crate::bed::outcome::Outcome;

/// When ibprov-guests told of a guest, for the first time.
pub(crate) fn told(guest: &Outcome, name: &str, text: &str) -> Duration {
    let first = all_told(guest, name, text).first().copied();
    first.unwrap_or_else(|| panic!("nothing of {name} with {text:?}"))
}

fn all_told(guest: &Outcome, name: &str, text: &str) -> Vec<Duration> {
    let of_unit = guest.journal.unit("ibprov-guests.service");
    let entries = of_unit.filter(|e| e.field("IBPROV_GUEST") == name && e.message.contains(text));
    entries.map(|entry| entry.at).collect()
}

/// From each time that the kernel told of VF 1's netdev, the last that the VF
/// needs, to the start of its guest being asked for, seconds.
pub(crate) fn delays(guest: &Outcome) -> Vec<f64> {
    let events = guest.file("uevents");
    let netdev = |l: &&str| l.contains(" add ") && l.contains("0001:01:00.2/net/");
    let time = |event: &str| -> f64 {
        let time = event.strip_prefix("KERNEL[").and_then(|rest| rest.split(']').next());
        time.and_then(|t| t.parse().ok()).expect("time")
    };
    let right: Vec<f64> = events.lines().filter(netdev).map(time).collect();
    let started = all_told(guest, "vm@1.service", "is being started");
    assert_eq!(right.len(), started.len(), "one start for each time it was right:\n{events}");
    let delay = |(started, right): (&Duration, f64)| started.as_secs_f64() - right;
    started.iter().zip(right).map(delay).collect()
}
