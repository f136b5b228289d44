//! The guest itself, before anything is asked of ibprov.

use crate::bed::journal::assert_in_order;
use crate::machine::boot;

#[test]
fn a_guest_without_an_hca_boots_and_its_script_is_heard() {
    let guest = boot("no_hca");
    guest.assert_success();
    assert_eq!(guest.stdout(), "active\n");
    assert_eq!(guest.file("left-by-script"), "yes\n");
}

#[test]
fn the_journal_tells_the_order_of_the_boot() {
    let guest = boot("no_hca");
    let journal = &guest.journal;
    assert_in_order(&[
        ("sysinit.target", journal.started("sysinit.target")),
        ("basic.target", journal.started("basic.target")),
        ("multi-user.target", journal.started("multi-user.target")),
    ]);
    assert_eq!(guest.ordering_cycles(), Vec::<String>::new());
}
