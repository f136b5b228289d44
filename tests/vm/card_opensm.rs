//! Debian's opensm on the software card (`tests/vm/card`, knob `sm=real`): subnet
//! manager, drivers and tools are real, ports and switch answer them.

use crate::card::assert_sound;
use crate::machine::boot;

#[test]
fn the_distribution_s_subnet_manager_brings_the_ports_up() {
    let guest = boot("card_opensm");
    guest.assert_success();
    assert_sound(&guest);
    assert!(!guest.stdout().contains("not "), "{}", guest.stdout());
    assert_eq!(guest.file("states.before"), "2 2: INIT\n");
    assert_eq!(guest.file("states.after"), "2 4: ACTIVE\n");
    assert!(guest.file("sminfo").contains("SMINFO_MASTER"), "{}", guest.file("sminfo"));
    // The switch and both cards.
    let fabric = guest.file("fabric");
    let nodes = |kind: &str| fabric.lines().filter(|l| l.starts_with(kind)).count();
    assert_eq!((nodes("Switch"), nodes("Ca")), (1, 2), "{fabric}");
    let pings = guest.file("ping");
    assert!(pings.contains("3 received"), "{pings}\n{}", guest.stdout());
}

#[test]
fn a_port_without_a_subnet_manager_is_told_from_one_with() {
    let guest = boot("card_opensm");
    let port = |name: &str| guest.json(name)["hcas"][1]["ports"][0].clone();
    assert_eq!(port("before.json")["state"], "init");
    assert_eq!(port("after.json")["state"], "active");
    // A management packet over the switch to the other card and back.
    assert!(guest.file("nodeinfo").contains("0x0c42a10300a0b200"), "{}", guest.file("nodeinfo"));
}

/// The exit codes of status and of check, the ports that both name as not active, each with
/// its severity, and how many are active.
fn told(name: &str) -> (String, String, Vec<String>, String) {
    let guest = boot("card_opensm");
    let text = guest.stdout();
    let line = |begin: &str| {
        text.lines().find_map(|l| l.strip_prefix(begin)).expect("its exit code").to_owned()
    };
    let of = |name: &str| -> Vec<String> {
        let report = guest.json(name);
        let all = report["findings"].as_array().expect("findings").iter();
        all.filter(|f| f["code"] == "port-not-active")
            .flat_map(|f| {
                let object = f["object"].as_str().expect("object").to_owned();
                let severity = f["severity"].as_str().expect("severity").to_owned();
                object.split(", ").map(|o| format!("{severity} {o}")).collect::<Vec<_>>()
            })
            .collect()
    };
    let named = of(&format!("{name}.json"));
    assert_eq!(named, of(&format!("{name}.check.json")), "status and check differ: {text}");
    let count = guest.json(&format!("{name}.json"))["expected_ports"]["active"].to_string();
    (line(&format!("{name}: ")), line(&format!("{name} check: ")), named, count)
}

#[test]
fn a_node_without_a_subnet_manager_is_not_ready_and_one_cable_less_is_an_exception() {
    let (status, check, named, active) = told("before");
    assert_eq!((status.as_str(), check.as_str(), active.as_str()), ("3", "3", "0"), "{named:?}");
    assert_eq!(named.len(), 2, "{named:?}");
    assert!(named.iter().all(|port| port.starts_with("error ")), "{named:?}");
    let (status, _, named, active) = told("after");
    assert_eq!((status.as_str(), active.as_str(), named.len()), ("0", "2", 0), "{named:?}");
    let (status, check, named, active) = told("cable");
    assert_eq!((status.as_str(), check.as_str(), active.as_str()), ("1", "1", "1"), "{named:?}");
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].starts_with("warning ") && named[0].contains("0001:02:00.0"), "{named:?}");
    let text = boot("card_opensm").stdout();
    let metrics: Vec<&str> =
        text.lines().filter(|l| l.starts_with("ibprov_ports_active ")).collect();
    assert_eq!(metrics, [0, 2, 1].map(|n| format!("ibprov_ports_active {n}")), "{text}");
}
