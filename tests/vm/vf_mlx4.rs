//! The GUID plan by mlx4's alias GUIDs.

use std::collections::BTreeMap;

use crate::machine::{boot, scene};
use crate::vf_plan::grown;

/// The facts of three VFs with a driver, which have no node GUID of their own,
/// and one without.
fn planned(first: &str) -> String {
    let vf = |n: u32| {
        let port = format!("{first}:0001:{n:04x}");
        let digits = port.replace(':', "");
        let bytes: Vec<&str> = (0..8).map(|i| &digits[2 * i..2 * i + 2]).collect();
        format!("{n} mlx4_core (null) 0000:0000:0000:0000 {port} {}\n", bytes.join(":"))
    };
    (0..3).map(vf).collect::<String>() + "3 - (null) - - -\nautoprobe 1\n"
}

fn granted(first: &str) -> String {
    (0..4).map(|n| format!("fe80:0000:0000:0000:{first}:0001:{n:04x}\n")).collect()
}

#[test]
fn alias_guids_are_granted_and_verified() {
    let guest = boot("vf_mlx4");
    guest.assert_success();
    assert_eq!(guest.file("fresh.gids"), granted("0200:0070"));
    assert_eq!(guest.file("fresh.facts"), planned("0200:0070"));
    let report = guest.json("booted.json");
    assert_eq!(report["pfs"][0]["exit_code"], 0, "{report:#}");
    assert!(guest.stdout().contains("other: 0\n"), "{}", guest.stdout());
    assert_eq!(guest.file("other.gids"), granted("0200:0071"));
    assert_eq!(guest.file("other.facts"), planned("0200:0071"));
}

#[test]
fn alias_guids_that_are_right_are_not_touched() {
    let guest = boot("vf_mlx4");
    assert!(guest.stdout().contains("again: 0\n"), "{}", guest.stdout());
    assert_eq!(grown(&guest, "counters.before", "counters.after"), BTreeMap::new());
}

#[test]
fn what_the_subnet_manager_does_not_grant_is_detected() {
    let guest = boot("vf_mlx4");
    assert!(guest.stdout().contains("refused: 3\n"), "{}", guest.stdout());
    let report = guest.json("refused.json");
    let cause = report["pfs"][0]["vfs"][1]["reason"].as_str().expect("cause");
    assert!(cause.contains("the subnet manager has not granted the port GUID"), "{cause}");
}

#[test]
fn module_parameters_are_explained() {
    let guest = boot("vf_mlx4");
    assert!(guest.stdout().contains("number: 3\n"), "{}", guest.stdout());
    let report = guest.json("number.json");
    let text = report["pfs"][0]["reason"].as_str().expect("text");
    assert!(text.contains("options mlx4_core num_vfs=2 probe_vf=2"), "{text}");
    assert!(guest.stdout().contains("driver: 3\n"), "{}", guest.stdout());
    let report = guest.json("driver.json");
    let cause = report["pfs"][0]["vfs"][3]["reason"].as_str().expect("cause");
    assert!(cause.contains("probe_vf"), "{cause}");
}

/// The driver takes away all ports of the function, also those that a mount or a login goes over.
#[test]
fn a_port_type_is_not_changed_while_a_netdev_is_in_use() {
    let guest = boot("vf_mlx4");
    let is = |name: &str| scene("vf_mlx4", &format!("type {name}"));
    assert_eq!(is("restart"), "0 ib");
    assert_eq!(is("unit"), "1 active ");
    let report = guest.json("type.json");
    let cause = &report["ports"][0]["cause"];
    assert_eq!((&report["verdict"], &cause["in_use"]), (&"exceptions".into(), &true.into()));
    let used = "the type is set at the next boot, because the adapter is in use: ";
    let address = " has address 10.4.0.1/24";
    let message = cause["message"].as_str().expect("a message");
    assert!(message.contains(used) && message.ends_with(address), "{message}");
    let step = &report["steps"][0];
    assert_eq!(step["step"], "port-types", "{report:#}");
    let reason = step["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("left undone: ") && reason.ends_with(address), "{reason}");
    for (name, code) in [("status", "3 ib"), ("dry-run", "1 ib")] {
        let told = guest.file(&format!("type.{name}"));
        assert_eq!(is(name), code, "{told}");
        assert!(told.contains(used) && told.contains(address), "{name}: {told}");
    }
    assert_eq!(is("netdev"), "10.4.0.1/24");
    assert_eq!(is("force"), "0 eth", "{}", guest.file("type.force"));
}

/// What the VFs of a dual-port card have and show, by [`planned`]'s template: one of port 1, one of
/// port 2, which it shows as its port 1, and two of both, of which the host has one.
fn of_ports(first: &str) -> String {
    let guid = |kind: u32, vf: u32| format!("{first}:{kind:04x}:{vf:04x}");
    let has = |vf, port, kind| {
        let guid = guid(kind, vf);
        let number = guid.replace(':', "");
        format!("{vf} has {port} {} {guid}\n", number.trim_start_matches('0'))
    };
    let shows = |vf, port, kind| format!("{vf} shows {port} {}\n", guid(kind, vf));
    [
        has(0, 1, 1) + &shows(0, 1, 1),
        has(1, 2, 1) + &shows(1, 1, 1),
        has(2, 1, 1) + &has(2, 2, 2) + &shows(2, 1, 1) + &shows(2, 2, 2),
        has(3, 1, 1) + &has(3, 2, 2),
    ]
    .concat()
}

#[test]
fn each_port_of_a_vf_gets_its_guid_and_is_verified() {
    let guest = boot("vf_mlx4_ports");
    guest.assert_success();
    assert_eq!(guest.file("fresh.aliases"), of_ports("0200:0070"));
    let report = guest.json("booted.json");
    assert_eq!(report["pfs"][0]["exit_code"], 0, "{report:#}");
    let status = guest.json("status.json");
    assert_eq!(status["planned_vfs"], serde_json::json!({"good": 4, "of": 4}), "{status:#}");
    assert!(guest.stdout().contains("again: 0\n"), "{}", guest.stdout());
    assert_eq!(grown(&guest, "counters.before", "counters.after"), BTreeMap::new());
}

#[test]
fn a_second_port_without_a_cable_holds_up_no_vf() {
    let guest = boot("vf_mlx4_ports");
    let vfs = |name: &str| guest.json(&format!("{name}.json"))["pfs"][0]["vfs"].clone();
    let right = |name: &str| {
        let all = vfs(name);
        let all = all.as_array().expect("VFs").iter();
        all.map(|vf| vf["right"].as_bool().expect("right")).collect::<Vec<_>>()
    };
    // Nobody grants the GUID of VF 1, which has port 2 alone.
    assert_eq!(right("dark"), [true, false, true, true], "{:#}", vfs("dark"));
    let cause = vfs("dark")[1]["reason"].as_str().expect("cause").to_owned();
    assert!(cause.contains("the subnet manager has not granted"), "{cause}");
    assert_eq!(right("lit"), [true; 4], "{:#}", vfs("lit"));
    assert_eq!(guest.file("lit.aliases"), of_ports("0200:0071"));
}

#[test]
fn a_vf_whose_second_port_is_in_use_keeps_its_guids() {
    let guest = boot("vf_mlx4_ports");
    assert!(guest.stdout().contains("used: 1\n"), "{}", guest.stdout());
    let report = guest.json("used.json");
    let vf = &report["pfs"][0]["vfs"][2];
    assert_eq!((&vf["right"], &vf["deferred"]), (&false.into(), &true.into()), "{vf:#}");
    let of = |text: &str, vf: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with(vf)).map(str::to_owned).collect()
    };
    let now = guest.file("used.aliases");
    assert_eq!(of(&now, "2 "), of(&of_ports("0200:0071"), "2 "));
    assert_eq!(of(&now, "0 "), of(&of_ports("0200:0072"), "0 "));
}
