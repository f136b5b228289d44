//! The initrd has loaded the drivers, so that interfaces were made before any rule of ours
//! was read: they get their names all the same, and one that cannot is not `configured`.

use crate::bed::journal::assert_in_order;
use crate::bed::outcome::Outcome;
use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("early_drivers", name)
}

#[test]
fn the_kernels_names_were_there_before_udev() {
    let guest = boot("early_drivers");
    guest.assert_success();
    let early = guest.file("early");
    for name in ["ib0", "ib1", "ib2", "ib3"] {
        assert!(early.lines().any(|l| l.starts_with(name)), "{early}");
    }
}

#[test]
fn names_are_given_while_interfaces_are_down_also_where_two_swap_theirs() {
    assert_eq!(scene("ib0"), "0001:02:00.0 active 10.0.2.1/24");
    assert_eq!(scene("ib1").trim(), "0001:01:00.0 active");
    assert_eq!(scene("fabric0"), "0001:03:00.0 active 10.0.3.1/24");
    let guest = boot("early_drivers");
    assert_eq!(guest.file("networking"), "success\n");
    let journal = &guest.journal;
    let ended = if udev_renames_what_is_up(&guest) {
        journal.started("ibprov.service")
    } else {
        journal.failed("ibprov.service")
    };
    assert_in_order(&[
        ("ibprov.service", ended),
        ("networking.service", journal.started("networking.service")),
    ]);
}

/// Linux lets it from 6.2 on.
fn udev_renames_what_is_up(guest: &Outcome) -> bool {
    let report = guest.boot_json();
    let kernel = report["kernel"].as_str().expect("kernel");
    let number = |nth| kernel.split('.').nth(nth).and_then(|n| n.parse().ok()).unwrap_or(0);
    (number(0), number(1)) >= (6, 2)
}

#[test]
fn one_that_is_up_keeps_its_name_and_is_not_configured() {
    let guest = boot("early_drivers");
    if udev_renames_what_is_up(&guest) {
        assert_eq!(scene("ib3"), "inactive");
        assert_eq!(scene("status"), "0");
        assert!(guest.file("dmesg").contains("storage0: renamed from ib3 (while UP)"));
        return;
    }
    assert_eq!(scene("ib3"), "failed");
    assert_ne!(scene("status"), "0");
    let report = guest.boot_json();
    assert_eq!(report["exit_code"], 3, "{report:#}");
    let ports = report["ports"].as_array().expect("ports");
    let port = ports.iter().find(|p| p["pci"] == "0001:04:00.0").expect("the fourth");
    assert_eq!(port["missing"], "configured", "{port:#}");
    let why = port["cause"]["message"].as_str().expect("cause");
    assert!(
        why.contains("storage0") && why.contains("an interface that is up is not renamed"),
        "{why}"
    );
    assert!(guest.file("status").contains("an interface that is up is not renamed"));
}
