//! Interfaces that are killed at, bound anew again and again, and named with
//! malice. One boot.

use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("iface_rough", name)
}

#[test]
#[ignore = "rebinds and kills take minutes"]
fn killed_in_the_middle_it_goes_on_where_it_was() {
    assert_eq!(scene("killed"), "signal 1", "set, and not brought up yet");
    assert_eq!(scene("restarted"), "active umcast=1 10.0.2.1/24 ups=1", "one bring-up");
}

#[test]
#[ignore = "rebinds and kills take minutes"]
fn one_that_is_down_with_its_address_comes_up() {
    assert_eq!(scene("set down"), "active umcast=1 10.0.2.1/24 ups=2");
}

#[test]
#[ignore = "rebinds and kills take minutes"]
fn ten_rebinds_in_ten_seconds_end_well() {
    assert!(scene("ten").starts_with("active umcast=1 10.0.2.1/24 "));
}

#[test]
#[ignore = "rebinds and kills take minutes"]
fn one_that_comes_while_its_unit_still_stops_is_set_up() {
    assert_eq!(scene("stopping"), "deactivating", "so systemd drops the start");
    assert!(scene("overtaken").starts_with("active umcast=1 10.0.2.1/24 "));
}

#[test]
#[ignore = "rebinds and kills take minutes"]
fn hostile_names_are_names_like_others() {
    for name in ["ib-storage", "-x", "ib0;reboot", "a\\x2fb"] {
        assert_eq!(scene(&format!("hostile {name}")), "active umcast=1", "{name}");
    }
    assert_eq!(scene("after hostile"), "active");
    let instances = boot("iface_rough").file("instances");
    assert!(!instances.contains("x2freboot") && !instances.contains("failed"), "{instances}");
}

#[test]
#[ignore = "rebinds and kills take minutes"]
fn connected_mode_and_its_mtu_are_set_and_taken_back() {
    assert_eq!(scene("mode connected").trim(), "0 connected 65520");
    assert_eq!(scene("mode datagram").trim(), "0 datagram 2044");
}

#[test]
#[ignore = "rebinds and kills take minutes"]
fn a_name_goes_with_a_port_guid() {
    let line = scene("named");
    assert!(line.starts_with("active ") && line.ends_with("00:02:c9:03:00:aa:00:04"), "{line}");
}

#[test]
#[ignore = "rebinds and kills take minutes"]
fn one_that_was_made_with_another_name_gets_its_own_while_it_is_down() {
    for how in ["named late", "named by hand"] {
        let line = scene(how);
        let (got, wanted) = line.trim_start_matches("0 ").split_once(" of ").expect("indices");
        assert_eq!(got, wanted, "{how}");
    }
    assert_eq!(scene("named never"), "3");
    let said = boot("iface_rough").file("early.log");
    assert!(said.contains("an interface that is up is not renamed"), "{said}");
}
