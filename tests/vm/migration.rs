//! A node of the vendor's package in ten boots: ibprov is installed, takes the node over,
//! is upgraded, downgraded and removed. Whatever was done before, each boot has ib0.

use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("migration", name)
}

/// The boots that the vendor's agents bring up, with their udev rule.
const VENDORS: [&str; 4] = ["vendor", "installed", "back", "removed"];
/// The boots that ibprov brings up, and nothing of the vendor's.
const OURS: [&str; 5] = ["migrated", "upgraded", "reinstalled", "migrated-again", "downgraded"];

#[test]
#[ignore = "ten boots of one machine take minutes"]
fn each_boot_has_its_interface_from_one_agent() {
    for name in VENDORS {
        assert_eq!(
            scene(name),
            "ib0 10.0.0.1/24 mtu 2044, networking success, openibd openibd.service active, \
             ibprov inactive, manager 1",
            "{name}"
        );
    }
    for name in OURS {
        assert_eq!(
            scene(name),
            "ib0 10.0.0.1/24 mtu 2044, networking success, openibd ibprov-openibd.service active, \
             ibprov active, manager 0",
            "{name}"
        );
    }
}

#[test]
#[ignore = "ten boots of one machine take minutes"]
fn each_step_says_what_it_did() {
    for (step, code) in [
        ("vendor-install", "0"),
        ("installs", "0"),
        // A dry run: something would be changed.
        ("plans", "1"),
        ("migrates", "0"),
        ("status", "0"),
        ("upgrades", "0"),
        // The name openibd.service is ibprov's.
        ("reinstalls", "1"),
        ("returns", "0"),
        ("migrates-again", "0"),
        ("removes", "0"),
        ("installs-again", "0"),
        ("migrates-third", "0"),
        ("downgrades", "0"),
    ] {
        let said = boot("migration").file(step);
        assert_eq!(scene(step), code, "{step}: {said}");
    }
    assert_eq!(scene("forgotten"), "inactive not-found");
    let guest = boot("migration");
    for install in ["installs", "installs-again"] {
        let said = guest.file(install);
        let told = "openibd.service is enabled on this host, so ibprov.service was not enabled";
        assert!(said.contains(told), "{said}");
    }
}
