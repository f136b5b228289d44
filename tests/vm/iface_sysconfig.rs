//! Interfaces on hosts with /etc/sysconfig: Red Hat's network-scripts, which look
//! once, and SUSE's wicked, which watches. By the texts of their units, with
//! programs that stand for theirs. One boot.

use crate::bed::journal::assert_in_order;
use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("iface_sysconfig", name)
}

#[test]
#[ignore = "stand-ins play these stacks; iface_ifupdown and iface_networkd have real ones"]
fn network_scripts_bring_up_what_is_there_before_them() {
    assert_eq!(scene("before"), "active umcast=1 10.0.0.1/24 ups=1");
    let guest = boot("iface_sysconfig");
    let left = guest
        .journal
        .find("ib0: configured; left to the network stack: network.service has not started");
    assert!(left.is_some_and(|e| e.field("IBPROV_STACK") == "network-scripts"));
    let set = guest.journal.find("ib0: set umcast 1").expect("ib0 is set");
    assert_in_order(&[
        ("ib0 is set", set.at),
        ("network-pre.target", guest.journal.started("network-pre.target")),
    ]);
}

#[test]
#[ignore = "stand-ins play these stacks; iface_ifupdown and iface_networkd have real ones"]
fn one_that_network_scripts_missed_is_brought_up_once() {
    let brake = boot("iface_sysconfig").file("brake");
    assert_eq!(brake, "ActiveState=activating\nib0\n", "not at the same time");
    assert_eq!(scene("meanwhile"), "active umcast=1 10.0.1.1/24 ups=1");
    assert_eq!(scene("late"), "active umcast=1 10.0.2.1/24 ups=1");
    let guest = boot("iface_sysconfig");
    let failed = guest.journal.failed("network.service");
    let ifup = guest
        .journal
        .find("ib1: network.service finished before the interface appeared")
        .expect("ifup");
    assert_in_order(&[("network.service", failed), ("ifup", ifup.at)]);
    let explained = guest.file("dry-run.ib2");
    assert!(explained.contains("stack network-scripts (failed): claims it:"), "{explained}");
}

#[test]
#[ignore = "stand-ins play these stacks; iface_ifupdown and iface_networkd have real ones"]
fn wicked_takes_what_appears_by_itself() {
    assert_eq!(scene("wicked"), "active umcast=1 10.0.3.1/24 ups=1");
    assert_eq!(scene("manual"), "active umcast=1  ups=0");
    let guest = boot("iface_sysconfig");
    let taken = guest.file("dry-run.ib3");
    assert!(taken.contains("stack wicked (active): claims it:"), "{taken}");
    let manual = guest.file("dry-run.ib4");
    assert!(manual.contains("STARTMODE=manual in /etc/sysconfig/network/ifcfg-ib4"), "{manual}");
}
