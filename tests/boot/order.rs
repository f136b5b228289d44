//! Where ibprov.service stands in the boot.

use crate::bed::journal::assert_in_order;
use crate::nspawn::boot;

#[test]
fn ibprov_ends_before_the_network_service_begins() {
    let guest = boot("ifupdown");
    guest.assert_success();
    let journal = &guest.journal;
    assert_in_order(&[
        ("local-fs.target", journal.started("local-fs.target")),
        ("ibprov.service", journal.started("ibprov.service")),
        ("network-pre.target", journal.started("network-pre.target")),
        ("networking.service", journal.started("networking.service")),
    ]);
}

#[test]
fn the_fabric_manager_of_nvswitches_begins_after_ibprov() {
    let journal = &boot("ifupdown").journal;
    assert_in_order(&[
        ("ibprov.service", journal.started("ibprov.service")),
        ("nvidia-fabricmanager.service", journal.started("nvidia-fabricmanager.service")),
    ]);
}

#[test]
fn the_graph_with_ifupdown_has_no_cycle() {
    assert_eq!(boot("ifupdown").ordering_cycles(), Vec::<String>::new());
}

#[test]
fn openibd_is_the_name_of_a_unit_after_ibprov() {
    let guest = boot("ifupdown");
    assert_eq!(
        guest.stdout(),
        "Id=ibprov.service\nActiveState=active\nId=ibprov-openibd.service\n"
    );
}

#[test]
fn systemd_has_nothing_to_say_about_the_units() {
    let guest = boot("ifupdown");
    guest.assert_success();
    assert_eq!(guest.file("verify"), "");
}

#[test]
fn the_unit_is_as_closed_as_promised() {
    let security = boot("ifupdown").file("security");
    let overall = security.lines().find_map(|l| l.split_once("exposure level for ibprov.service:"));
    let level = overall.and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<f64>().ok());
    let level = level.unwrap_or_else(|| panic!("no level in:\n{security}"));
    // 0.2 of it is ProtectClock=, which the unit cannot have: see there.
    assert!(level <= 4.4, "systemd-analyze security says {level}:\n{security}");
}
