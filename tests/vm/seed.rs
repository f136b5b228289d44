//! The founding failure, without and with ibprov.

use crate::bed::journal::assert_in_order;
use crate::bed::outcome::Outcome;
use crate::card::assert_sound;
use crate::machine::boot;

#[test]
#[ignore = "late_rdma_no_agent shows the same"]
fn without_ibprov_networking_cannot_find_ib0() {
    let guest = boot("seed_without");
    guest.assert_success();
    guest.journal.expect("networking.service", "Cannot find device \"ib0\"");
    assert_eq!(guest.file("networking"), "exit-code\n");
    assert!(!guest.file("addr").contains("192.168.77.9"), "{}", guest.file("addr"));
}

#[test]
fn with_ibprov_networking_configures_ib0() {
    let guest = boot("seed_with");
    assert_up(&guest);
    let unit = guest.file("unit");
    assert!(unit.contains("ActiveState=active\n"), "{unit}");
    assert!(unit.contains("StatusText=1 of 1 expected ports ready"), "{unit}");
}

#[test]
fn it_is_the_distributions_own_driver_and_finds_nothing_amiss() {
    let guest = boot("seed_with");
    assert_sound(&guest);
    assert_eq!(guest.file("driver"), "/sys/bus/pci/drivers/mlx5_core\n");
    assert_eq!(guest.file("taint"), "\n", "not the distribution's own module");
}

#[test]
fn the_network_comes_after_the_port() {
    let guest = boot("seed_with");
    let journal = &guest.journal;
    assert_in_order(&[
        ("ibprov.service", journal.started("ibprov.service")),
        ("network-pre.target", journal.started("network-pre.target")),
        ("networking.service", journal.started("networking.service")),
        ("network.target", journal.started("network.target")),
    ]);
}

#[test]
fn the_report_tells_of_the_port_and_of_what_was_loaded() {
    let guest = boot("seed_with");
    let report = guest.boot_json();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["verdict"], "ready");
    let port = &report["ports"][0];
    assert_eq!(port["netdev"], "ib0");
    assert_eq!(port["pci"], "0001:01:00.0");
    assert_eq!(port["reached"], "named");
    let modules = report["modules"].as_array().expect("modules");
    let names: Vec<&str> = modules.iter().filter_map(|m| m["name"].as_str()).collect();
    assert_eq!(names, ["ib_ipoib", "ib_umad", "ib_uverbs"]);
    assert!(modules.iter().all(|m| m["outcome"] == "loaded"), "{modules:?}");
    assert_eq!(report["steps"].as_array().map(Vec::len), Some(1), "one modprobe: {report}");
}

#[test]
fn the_status_screen_shows_the_whole_ladder() {
    let guest = boot("seed_with");
    assert!(guest.stdout().contains("status: 0\n"), "{}", guest.stdout());
    let status = guest.json("status.json");
    let port = &status["hcas"][0]["ports"][0];
    assert_eq!(
        port["ladder"]["reached"],
        serde_json::json!([
            "pci",
            "driver",
            "rdma",
            "netdev",
            "named",
            "configured",
            "link",
            "active"
        ]),
        "{status}"
    );
    assert_eq!(port["addresses"][0], "192.168.77.9/24");
    assert_eq!(port["state"], "active");
    assert_eq!(port["rate"], serde_json::json!({ "gbps": 200, "width": 4, "speed": "hdr" }));
    assert_eq!(status["units"]["openibd"], "ibprov");
}

#[test]
fn events_carry_their_message_id_and_fields() {
    let guest = boot("seed_with");
    let ready: Vec<_> = guest
        .journal
        .0
        .iter()
        .filter(|e| e.field("MESSAGE_ID") == "5491926d039241e28588e22f466d308e")
        .collect();
    assert_eq!(ready.len(), 1);
    assert_eq!(ready[0].field("IBPROV_NETDEV"), "ib0");
    assert_eq!(ready[0].field("IBPROV_PCI"), "0001:01:00.0");
    assert_eq!(ready[0].field("PRIORITY"), "5");
    // journald does not know it if it gets to the message when the sender has ended.
    assert_eq!(ready[0].field("OBJECT_SYSTEMD_UNIT"), "ibprov.service");
}

#[test]
#[ignore = "late_both has both"]
fn a_probe_of_5_s_is_waited_for() {
    let guest = boot("late_probe");
    assert_up(&guest);
    assert_waited(&guest, 4.0);
}

#[test]
#[ignore = "late_both has both"]
fn an_rdma_device_3_s_after_the_probe_is_waited_for() {
    let guest = boot("late_device");
    assert_up(&guest);
    assert_waited(&guest, 2.0);
}

#[test]
#[ignore = "card_faults has a late adapter, rdma_core_late a late RDMA device"]
fn both_together_are_waited_for() {
    let guest = boot("late_both");
    assert_up(&guest);
    assert_waited(&guest, 7.0);
}

/// networking.service found ib0 and configured it.
pub(crate) fn assert_up(guest: &Outcome) {
    guest.assert_success();
    let address = guest.file("addr");
    let ib0 = address.lines().find(|l| l.starts_with("ib0"));
    assert!(ib0.is_some_and(|l| l.contains("192.168.77.9/24")), "{address}");
    assert_eq!(guest.file("networking"), "success\n");
}

/// boot took at least so many seconds, because it had to.
fn assert_waited(guest: &Outcome, at_least: f64) {
    let report = guest.boot_json();
    let usec = |name: &str| report[name].as_f64().expect("time");
    let took = (usec("finished_usec") - usec("started_usec")) / 1e6;
    assert!(took >= at_least, "boot took {took} s: the HCA was not late, so this proves nothing");
    assert!(took < at_least + 12.0, "boot took {took} s");
}
