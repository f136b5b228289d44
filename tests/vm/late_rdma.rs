//! The founding failure: the card's RDMA device comes after the network
//! service has looked for ib0.

use crate::bed::journal::assert_in_order;
use crate::machine::boot;

#[test]
#[ignore = "of `make demo`; seed:: boots the failure itself, and again with ibprov"]
fn without_ibprov_networking_does_not_find_ib0() {
    let guest = boot("late_rdma_no_agent");
    guest.assert_success();
    assert_eq!(guest.file("networking"), "failed\n");
    guest.journal.expect("networking.service", "Cannot find device \"ib0\"");
    let addr = guest.file("addr");
    assert!(
        addr.contains("ib0") && !addr.contains("10.7.0.1"),
        "ib0 comes, too late to get its address: {addr}"
    );
}

#[test]
#[ignore = "of `make demo`; seed:: boots the failure itself, and again with ibprov"]
fn with_ibprov_ib0_has_its_address() {
    let guest = boot("late_rdma");
    guest.assert_success();
    assert_eq!(guest.file("networking"), "active\n");
    let addr = guest.file("addr");
    let ib0 = addr.lines().find(|l| l.starts_with("ib0")).unwrap_or_default();
    assert!(ib0.contains("10.7.0.1/24"), "{addr}");
}

#[test]
#[ignore = "of `make demo`; seed:: boots the failure itself, and again with ibprov"]
fn the_network_waits_for_the_card() {
    let guest = boot("late_rdma");
    let journal = &guest.journal;
    assert_in_order(&[
        ("ibprov.service", journal.started("ibprov.service")),
        ("network-pre.target", journal.started("network-pre.target")),
        ("networking.service", journal.started("networking.service")),
        ("network.target", journal.started("network.target")),
    ]);
    assert_eq!(guest.ordering_cycles(), Vec::<String>::new());
}
