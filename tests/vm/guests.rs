//! From the card to the guest: HCA, VFs, GUIDs, hand-over, start.

use std::time::Duration;

use crate::bed::journal::assert_in_order;
use crate::bed::outcome::Outcome;
use crate::machine::boot;

/// When ibprov-guests told of a guest.
fn told(guest: &Outcome, name: &str, text: &str) -> Duration {
    let mut of_unit = guest.journal.unit("ibprov-guests.service");
    let entry = of_unit.find(|e| e.field("IBPROV_GUEST") == name && e.message.contains(text));
    entry.unwrap_or_else(|| panic!("nothing of {name} with {text:?}")).at
}

#[test]
fn guests_start_after_their_vfs_and_find_them_right() {
    let guest = boot("guests");
    let journal = &guest.journal;
    assert_eq!(guest.file("active"), "active\ninactive\nactive\n");
    assert_in_order(&[
        ("ibprov.service", journal.started("ibprov.service")),
        ("the first start", told(&guest, "vm@0.service", "is being started")),
        ("the first guest", journal.started("vm@0.service")),
        ("who comes after it", told(&guest, "vm@2.service", "is being started")),
        ("and is up", journal.started("vm@2.service")),
        ("ibprov-guests.service", journal.started("ibprov-guests.service")),
        ("multi-user.target", journal.started("multi-user.target")),
    ]);
    journal.expect("vm@0.service", "opened the group, port 02:00:00:00:00:00:01:00");
    let address = &journal.expect("vm@2.service", "address ").message;
    assert!(address.ends_with("02:00:00:00:00:00:01:02"), "{address}");
    assert_eq!(guest.ordering_cycles(), Vec::<String>::new());
}

#[test]
fn a_guest_whose_vf_failed_is_told_of_and_not_started() {
    let guest = boot("guests");
    let unit = guest.file("unit");
    assert!(unit.contains("ActiveState=active") && unit.contains("2 of 3 guests up"), "{unit}");
    let status = guest.file("status");
    assert!(
        status.contains("unit vm@1.service: waits: VF 0000:01:00.0/1 (0000:01:00.2): "),
        "{status}"
    );
    assert!(status.contains("VF 0000:01:00.0/0 (0000:01:00.1): handed-over: right"), "{status}");
    assert!(status.contains("VF 0000:01:00.0/2 (0000:01:00.3): verified: right"), "{status}");
}

#[test]
fn it_starts_when_its_vf_is_right_within_100_ms() {
    let guest = boot("guests");
    assert!(
        guest.stdout().starts_with("status: 1\napply: 0\n"),
        "{}{}",
        guest.stdout(),
        guest.file("apply")
    );
    guest.assert_success();
    assert_eq!(guest.stdout(), "status: 1\n");
    let starting = told(&guest, "vm@1.service", "is being started");
    let verified = guest.file("verified");
    let verified: f64 = verified.split(' ').next().and_then(|t| t.parse().ok()).expect("time");
    // The bind ends when the VF's netdev is there; that may be heard before.
    let delay = starting.as_secs_f64() - verified;
    assert!(delay < 0.1, "{delay} s from the verified VF to the start");
    println!("from the verified VF to the start: {delay:.3} s");
    assert_in_order(&[
        ("multi-user.target", guest.journal.started("multi-user.target")),
        ("the late start", starting),
        ("the late guest", guest.journal.started("vm@1.service")),
    ]);
    let end = guest.file("end.unit");
    assert!(end.contains("ActiveState=active") && end.contains("SubState=exited"), "{end}");
}
