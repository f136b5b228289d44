//! ibprov.service in one graph with what else is ordered around the network:
//! no cycle, and no job that systemd had to drop.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bed::journal::assert_in_order;
use crate::bed::outcome::Outcome;
use crate::nspawn::boot;

/// Of every one of these graphs; what is not there was dropped by systemd.
const EVERYWHERE: [&str; 15] = [
    "ibprov.service",
    "ibprov-wait-online.service",
    "network-pre.target",
    "network.target",
    "network-online.target",
    "remote-fs-pre.target",
    "networking.service",
    "NetworkManager.service",
    "systemd-networkd.service",
    "systemd-networkd-wait-online.service",
    "nftables.service",
    "libvirtd.service",
    "iscsid.service",
    "rdma-load-modules@infiniband.service",
    "rdma-hw.target",
];

/// When each active unit came up. Not from the journal, which begins later
/// than the first of them.
fn active(guest: &Outcome) -> BTreeMap<String, Duration> {
    let shown = guest.file("units");
    let unit = |block: &str| {
        let value =
            |name: &str| block.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix('='));
        let usec = value("ActiveEnterTimestampMonotonic")?.parse().ok()?;
        (value("ActiveState")? == "active")
            .then(|| (value("Id").unwrap_or_default().to_owned(), Duration::from_micros(usec)))
    };
    shown.split("\n\n").filter_map(unit).collect()
}

fn assert_whole(guest: &Outcome, more: &[&str]) {
    guest.assert_success();
    assert_eq!(guest.ordering_cycles(), [""; 0]);
    let active = active(guest);
    let missing = EVERYWHERE.iter().chain(more).filter(|u| !active.contains_key(**u));
    assert_eq!(missing.collect::<Vec<_>>(), [&""; 0], "these never came up");
    let at = |unit| (unit, active[unit]);
    for network in ["networking.service", "NetworkManager.service", "systemd-networkd.service"] {
        assert_in_order(&[at("ibprov.service"), at("network-pre.target"), at(network)]);
    }
    let online = at("ibprov-wait-online.service");
    assert_in_order(&[at("ibprov.service"), online, at("network-online.target")]);
    assert_in_order(&[online, at("remote-fs-pre.target")]);
    assert_in_order(&[at("ibprov.service"), at("remote-fs-pre.target"), at("libvirtd.service")]);
}

#[test]
fn with_cloud_init_up_to_24_2_the_graph_is_whole() {
    let units = ["cloud-init-local.service", "cloud-init.service", "cloud-config.service"];
    assert_whole(&boot("graph_cloud_init"), &units);
}

#[test]
fn with_cloud_init_since_24_3_the_graph_is_whole() {
    let units = [
        "cloud-init-main.service",
        "cloud-init-local.service",
        "cloud-init-network.service",
        "cloud-config.service",
    ];
    assert_whole(&boot("graph_cloud_init_main"), &units);
}

#[test]
fn with_firewalld_the_graph_is_whole() {
    assert_whole(&boot("graph_firewalld"), &["firewalld.service"]);
}
