//! From the card to the guest: HCA, VFs, GUIDs, hand-over, start.

use crate::bed::journal::assert_in_order;
use crate::guest_times::{delays, told};
use crate::machine::boot;

#[test]
fn guests_start_after_their_vfs_and_find_them_right() {
    let guest = boot("guests");
    let journal = &guest.journal;
    // VF 1 is not right yet.
    let planned = journal.expect("ibprov.service", "PF 0001:01:00.0: 2 of 3 VFs as planned");
    assert_eq!(guest.file("active"), "active\ninactive\nactive\n");
    assert_in_order(&[
        ("the plan is carried out", planned.at),
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
        status.contains("unit vm@1.service: waits: VF 0001:01:00.0/1 (0001:01:00.2): "),
        "{status}"
    );
    assert!(status.contains("VF 0001:01:00.0/0 (0001:01:00.1): handed-over: right"), "{status}");
    assert!(status.contains("VF 0001:01:00.0/2 (0001:01:00.3): verified: right"), "{status}");
}

#[test]
fn it_starts_at_once_when_its_vf_is_right() {
    let guest = boot("guests");
    guest.assert_success();
    assert_eq!(guest.stdout(), "status: 1\napply: 0\n");
    let starting = told(&guest, "vm@1.service", "is being started");
    // Its netdev is the last that a VF needs; the shell script slept for 10 s. It is less than a
    // second where the emulated processor has nothing else to do.
    let delays = delays(&guest);
    let is_short = |delay: &f64| (0.0..5.0).contains(delay);
    assert!(delays.len() == 1 && delays.iter().all(is_short), "{delays:?} s from netdev to start");
    assert_in_order(&[
        ("multi-user.target", guest.journal.started("multi-user.target")),
        ("the late start", starting),
        ("the late guest", guest.journal.started("vm@1.service")),
    ]);
    let end = guest.file("end.unit");
    assert!(end.contains("ActiveState=active") && end.contains("SubState=exited"), "{end}");
}
