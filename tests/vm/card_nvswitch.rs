//! Functions that manage NVSwitches, on the software card (`tests/vm/card`): the drivers
//! and how the kernel reads product data are real, what a bridge's data say is as NVIDIA
//! and its users describe them.

use std::sync::Arc;

use serde_json::Value;

use crate::bed::outcome::Outcome;
use crate::card::assert_sound;
use crate::machine::boot;

const PLAIN: &str = "0001:01:00.0";
const BRIDGE: &str = "0001:02:00.0";
const SLOW: &str = "0001:03:00.0";
/// A bridge that its driver gives up on.
const FAILED: &str = "0001:04:00.0";

fn machine() -> Arc<Outcome> {
    let guest = boot("card_nvswitch");
    guest.assert_success();
    guest
}

fn ended(guest: &Outcome, line: &str) {
    assert!(guest.stdout().lines().any(|l| l == line), "no {line:?} in\n{}", guest.stdout());
}

fn each<'v>(value: &'v Value, name: &str) -> Vec<&'v str> {
    let all = value.as_array().expect("a list").iter();
    all.map(|one| one[name].as_str().expect("a text")).collect()
}

#[test]
fn boot_waits_for_no_bridge_and_not_for_one_that_fails() {
    let guest = machine();
    assert_sound(&guest);
    let report = guest.json("first.json");
    assert_eq!(report["verdict"], "ready", "{report:#}");
    assert_eq!(each(&report["ports"], "pci"), [PLAIN, SLOW], "{report:#}");
    assert_eq!(each(&report["left_out"], "pci"), [BRIDGE, FAILED], "{report:#}");
    let reasons = each(&report["left_out"], "code");
    assert_eq!(reasons, ["nvswitch-management"; 2], "{report:#}");
    assert_eq!(guest.file("result"), "success\n");
    // It does fail.
    let dmesg = guest.file("dmesg");
    let failed = |l: &str| l.contains(FAILED) && l.contains("probe_one");
    assert!(dmesg.lines().any(failed), "{dmesg}");
    assert_eq!(guest.file("modules"), "ib_ipoib\nib_umad\n");
}

#[test]
fn status_says_what_a_bridge_is_and_misses_nothing() {
    let guest = machine();
    ended(&guest, "status: 0");
    ended(&guest, "status.json: 0");
    let why = "  not expected: manages an NVSwitch";
    let text = guest.file("status");
    assert_eq!(text.lines().filter(|l| l.starts_with(why)).count(), 2, "{text}");
    let status = guest.json("status.json");
    for hca in status["hcas"].as_array().expect("HCAs") {
        let is_bridge = hca["left_out"]["code"] == "nvswitch-management";
        let pci = hca["pci"].as_str().expect("address");
        assert_eq!(is_bridge, [BRIDGE, FAILED].contains(&pci), "{hca:#}");
    }
}

#[test]
fn wait_online_waits_for_ports_of_a_fabric_only() {
    let guest = machine();
    ended(&guest, "online.json: 0");
    let report = guest.json("online.json");
    assert_eq!(each(&report["ports"], "pci"), [PLAIN, SLOW], "{report:#}");
}

/// Its product data take 100 ms for each 4 octets.
#[test]
fn product_data_that_take_too_long_hold_up_nobody_and_are_not_read_twice() {
    let guest = machine();
    let kept: Vec<Value> =
        guest.file("kept").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let want = ["other", "nvswitch-management", "unread", "nvswitch-management"];
    assert_eq!(kept.iter().map(|k| k["product"].as_str().expect("text")).collect::<Vec<_>>(), want);
    // The kernel of the backports (6.12) gives up by itself before ibprov does.
    let given_up = format!("the vital product data of {SLOW} could not be read within 2 s");
    let by_kernel = format!("read the vital product data of {SLOW}: ");
    let problems = guest.json("first.json")["findings"].to_string();
    assert!(problems.contains(&given_up) || problems.contains(&by_kernel), "{problems}");
    // Nobody has asked again.
    let status = guest.file("status");
    assert!(!status.contains("could not be read"), "{status}");
    assert_eq!(guest.file("workers"), "", "left behind");
}

#[test]
fn its_interface_and_its_vfs_are_refused() {
    let guest = machine();
    assert_eq!(guest.file("failed"), "", "failed units");
    ended(&guest, "iface: 2");
    let said = guest.file("iface.error");
    assert!(said.contains("which manages an NVSwitch"), "{said}");
    ended(&guest, "iface.unit: 0");
    for verb in ["plan", "apply"] {
        ended(&guest, &format!("{verb}: 3"));
        let said = guest.file(verb) + &guest.file(&format!("{verb}.error"));
        assert!(said.contains(&format!("{BRIDGE} manages an NVSwitch")), "{verb}: {said}");
    }
}

#[test]
fn a_host_of_bridges_alone_gets_what_sends_management_packets() {
    let guest = machine();
    ended(&guest, "again: 0");
    assert_eq!(guest.file("modules.none"), "");
    ended(&guest, "alone: 0");
    assert_eq!(guest.file("modules.alone"), "ib_umad\n");
    let report = guest.json("alone");
    assert_eq!(report["verdict"], "ready", "{report:#}");
    assert_eq!(report["ports"], serde_json::json!([]), "{report:#}");
}
