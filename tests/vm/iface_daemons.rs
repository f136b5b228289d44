//! Interfaces on hosts whose network stack watches for them itself:
//! NetworkManager and systemd-networkd. One boot each.

use serde_json::Value;

use crate::machine::{boot, scene};

const BOTH: [(&str, &str); 2] =
    [("iface_networkd", "systemd-networkd"), ("iface_nm", "NetworkManager")];

fn outcome(scenario: &str, name: &str) -> Value {
    boot(scenario).json(&format!("{name}.json"))
}

#[test]
fn what_is_there_before_is_set_and_left_to_the_stack() {
    for (scenario, stack) in BOTH {
        assert_eq!(scene(scenario, "before"), "active umcast=1 10.1.0.1/24", "{scenario}");
        let outcome = outcome(scenario, "before");
        assert_eq!(outcome["bring_up"], "left", "{outcome}");
        let why = outcome["decision"]["why"].as_str().expect("why").to_owned();
        assert!(why.starts_with(&format!("{stack}.service is still to come")), "{why}");
    }
}

#[test]
fn what_comes_meanwhile_or_later_is_brought_up_by_the_stack() {
    for (scenario, _) in BOTH {
        for (name, net) in [("meanwhile", 1), ("late", 2), ("rebound", 2)] {
            let want = format!("active umcast=1 10.1.{net}.1/24");
            assert_eq!(scene(scenario, name), want, "{scenario} {name}");
            assert_eq!(outcome(scenario, name)["bring_up"], "up", "{scenario} {name}");
        }
        let ifup = boot(scenario).journal.find("running ifup").map(|e| e.message.clone());
        assert_eq!(ifup, None, "{scenario}: nobody else brings it up");
    }
}

#[test]
fn a_profile_that_does_not_fit_is_named_with_why() {
    for (scenario, why) in [
        (
            "iface_networkd",
            "60-wrong.network names it and does not fit: its address 98:03:9b:03:00:04 has the 6 bytes of Ethernet",
        ),
        (
            "iface_nm",
            "ib3.nmconnection does not fit: its address 80:00:00:48:FE:80:00:00:00:00:00:00:00:02:C9:03:00:AA:00:01 ends in another port GUID",
        ),
    ] {
        assert!(scene(scenario, "missed").starts_with("failed umcast=1"), "{scenario}");
        let outcome = outcome(scenario, "missed");
        assert_eq!(outcome["configured"], true, "its settings are made: {outcome}");
        assert_eq!(outcome["exit_code"], 3);
        let failure = outcome["failures"][0].as_str().expect("failure").to_owned();
        assert!(failure.contains(why), "{failure}");
        let text = boot(scenario).file("dry-run.missed");
        assert!(text.contains("decision: it cannot come up: "), "{text}");
    }
}

#[test]
fn both_ways_of_asking_agree() {
    let guest = boot("iface_networkd");
    guest.assert_success();
    let decision = |name: &str| {
        let text = guest.file(name);
        text.split_once("asked by: ").expect("way").0.to_owned()
    };
    assert_eq!(decision("dry-run"), decision("dry-run.no-bus"));
    assert!(decision("dry-run").contains("50-ib0.network (configured)"), "{}", decision("dry-run"));
}
