//! When things happened to the guests of the scenario `guests`, for the tests
//! and the bench.

use std::time::Duration;

use crate::bed::outcome::Outcome;

/// When ibprov-guests told of a guest.
pub(crate) fn told(guest: &Outcome, name: &str, text: &str) -> Duration {
    let mut of_unit = guest.journal.unit("ibprov-guests.service");
    let entry = of_unit.find(|e| e.field("IBPROV_GUEST") == name && e.message.contains(text));
    entry.unwrap_or_else(|| panic!("nothing of {name} with {text:?}")).at
}

/// When the kernel told of VF 1's netdev, seconds.
pub(crate) fn netdev(guest: &Outcome) -> f64 {
    let events = guest.file("uevents");
    let event = events.lines().find(|l| l.contains(" add ") && l.contains("0000:01:00.2/net/"));
    let event = event.unwrap_or_else(|| panic!("no netdev of VF 1:\n{events}"));
    let time = event.strip_prefix("KERNEL[").and_then(|rest| rest.split(']').next());
    time.and_then(|t| t.parse().ok()).expect("time")
}
