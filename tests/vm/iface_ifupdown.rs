//! Interfaces on a host with ifupdown: set up whenever they appear, brought up
//! once, by the right hand. One boot.

use crate::bed::journal::assert_in_order;
use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("iface_ifupdown", name)
}

#[test]
fn one_that_is_there_before_the_network_is_left_to_it() {
    assert_eq!(scene("before"), "active umcast=1 10.0.0.1/24 ups=1");
    let guest = boot("iface_ifupdown");
    let journal = &guest.journal;
    let set = journal.find("ib0: set umcast 1").expect("ib0 is set");
    assert_in_order(&[
        ("ib0 is set", set.at),
        ("network-pre.target", journal.started("network-pre.target")),
    ]);
    let left = journal
        .find("ib0: configured; left to the network stack: networking.service has not started yet");
    assert!(left.is_some_and(|e| e.field("IBPROV_STACK") == "ifupdown"));
}

#[test]
fn one_that_comes_while_the_network_starts_waits_and_is_brought_up_once() {
    let brake = boot("iface_ifupdown").file("brake");
    assert!(brake.starts_with("ActiveState=activating\nib1"), "{brake}");
    assert!(!brake.contains("ib1\n") && !brake.contains("UP"), "not at the same time: {brake}");
    assert_eq!(scene("meanwhile"), "active umcast=1 10.0.1.1/24 ups=1");
    let guest = boot("iface_ifupdown");
    let failed = guest.journal.failed("networking.service");
    let ifup = guest
        .journal
        .find("ib1: networking.service finished before the interface appeared")
        .expect("ifup");
    assert_in_order(&[("networking.service", failed), ("ifup", ifup.at)]);
}

#[test]
fn one_that_comes_after_the_boot_is_brought_up_once() {
    assert_eq!(scene("late"), "active umcast=1 10.0.2.1/24 ups=1");
    assert_eq!(scene("rebound"), "active umcast=1 10.0.2.1/24 ups=2");
    assert_eq!(scene("again"), "0 ups=1");
    assert_eq!(boot("iface_ifupdown").json("again.json")["steps"], serde_json::json!([]));
}

#[test]
fn a_hotplug_interface_is_ifupdowns_own() {
    assert_eq!(scene("hotplug"), "active umcast=1 10.0.3.1/24 ups=1");
    assert_eq!(scene("hotplug-rebound"), "active umcast=1 10.0.3.1/24 ups=2");
    let ifups = boot("iface_ifupdown").file("ifups");
    assert!(ifups.contains("ibprov-ifup-ib2"), "{ifups}");
    assert!(!ifups.contains("ibprov-ifup-ib3"), "{ifups}");
}

#[test]
fn p_key_children_come_by_p_key_and_are_set_up_too() {
    assert_eq!(scene("renamed"), "inactive active");
    for (child, pkey) in [
        ("ib0.8001", "0x8001"),
        ("ib0.800a", "0x800a"),
        ("ibp129s0f0.8001", "0x8001"),
        ("ibp129s0f0.800a", "0x800a"),
    ] {
        let line = scene(&format!("child {child}"));
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words.first().copied(), Some("true"), "{child}: {line}");
        assert!(words.contains(&pkey), "{child}: {line}");
        assert!(line.ends_with("umcast 0001"), "{child}: {line}");
    }
    assert_eq!(scene("mtu"), "2000");
}

#[test]
fn a_child_that_is_renamed_is_set_up_under_its_new_name() {
    assert_eq!(scene("child named storage0"), "true");
    assert_eq!(scene("child named ib0.800a"), "true");
}

/// Of two P_Key children one was at work, and the other had been set up.
#[test]
fn children_whose_unit_is_stopped_or_killed_are_set_up_once_it_is_started() {
    assert_eq!(scene("stopped"), "inactive job=");
    assert_eq!(scene("killed"), "failed job=");
    assert_eq!(scene("left"), "");
    assert_eq!(scene("taken up"), "true once");
}

#[test]
fn a_child_that_comes_while_the_unit_ends_that_sets_them_up_is_not_missed() {
    assert_eq!(scene("child after the last look"), "true true activating");
    let guest = boot("iface_ifupdown");
    assert!(!guest.stdout().contains("does not"), "{}", guest.stdout());
    assert!(!guest.stdout().contains("again and again"), "{}", guest.stdout());
}

#[test]
fn a_vf_that_is_bound_anew_is_set_up_anew() {
    assert_eq!(scene("vf 1"), "active umcast=1");
    assert_eq!(scene("vf 2"), "active umcast=1");
}

#[test]
fn dry_run_explains_and_both_ways_of_asking_agree() {
    let guest = boot("iface_ifupdown");
    guest.assert_success();
    let [bus, systemctl] = ["dry-run.bus", "dry-run.no-bus"].map(|n| guest.file(n));
    let split = |text: &str| {
        let (decision, way) = text.split_once("queried by: ").expect("way");
        (decision.to_owned(), way.trim().to_owned())
    };
    let ((a, way_a), (b, way_b)) = (split(&bus), split(&systemctl));
    assert_eq!((way_a.as_str(), way_b.as_str()), ("the system bus", "systemctl only"));
    assert_eq!(a, b);
    assert!(a.contains("decision: nothing to do: ifupdown has brought the interface up"), "{a}");
    let all = guest.file("dry-run");
    assert!(all.contains("stack ifupdown (failed): claims it: allow-hotplug in"), "{all}");
}

#[test]
#[ignore = "a root file system of its own"]
fn ifupdown2_is_asked_as_ifupdown_is() {
    let guest = boot("iface_ifupdown2");
    guest.assert_success();
    let scene = |name: &str| machine::scene("iface_ifupdown2", name);
    assert_eq!(scene("before"), "active umcast=1 10.0.0.1/24 ups=1");
    // It runs the commands of an interface that is not there, too.
    assert_eq!(scene("late"), "active umcast=1 10.0.1.1/24 ups=2");
    assert_eq!(scene("hotplug"), "active umcast=1 10.0.2.1/24 ups=1");
    assert_eq!(scene("again").trim(), "ib0 ib1 ib1 ib2", "{}", guest.file("again"));
    // An MTU of its own is not taken for the fabric's.
    assert_eq!(scene("mtu"), "1500");
    let deferred = &guest.json("ib0.json")["deferred"]["steps"];
    assert!(deferred.to_string().contains("2000"), "{deferred}");
}
