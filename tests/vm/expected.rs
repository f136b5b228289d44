//! Who is waited for, and who is not.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::bed::outcome::Outcome;
use crate::machine::boot;
use crate::seed::assert_up;

#[test]
fn without_an_hca_the_unit_is_active_and_starts_nothing() {
    let guest = boot("no_hca");
    guest.assert_success();
    assert_eq!(guest.stdout(), "active\n");
    let report = guest.json("service.json");
    assert_eq!(report["verdict"], "nothing-expected");
    guest.journal.expect("ibprov.service", "this host has no InfiniBand");
    assert_eq!(report["forks"], 0);
}

#[test]
fn what_others_decided_on_is_left_out_and_said() {
    let guest = boot("left_out");
    assert_up(&guest);
    let report = guest.boot_json();
    let ports = report["ports"].as_array().expect("ports");
    let ready: Vec<&Value> = ports.iter().filter(|p| p["reached"] == "named").collect();
    assert!(ready.len() == 1 && ready[0]["pci"] == "0001:01:00.0", "{report:#}");
    // Those of which a probe fails, on purpose, and no others.
    assert_eq!(ports.len(), 3, "{report:#}");
    let left_out = report["left_out"].as_array().expect("left out");
    let reasons: BTreeMap<&str, &str> = left_out
        .iter()
        .map(|l| (l["pci"].as_str().expect("pci"), l["code"].as_str().expect("code")))
        .collect();
    let want = [
        ("0001:01:00.1", "vf-of-this-host"),
        ("0001:01:00.2", "vf-of-this-host"),
        ("0001:02:00.0", "driver-override"),
        ("0001:03:00.0", "handed-over"),
        ("0001:04:00.0", "handed-over"),
    ];
    assert_eq!(reasons, BTreeMap::from(want), "{report}");
}

/// boot has ended well, and the network service has configured an interface after it.
fn expected() -> Arc<Outcome> {
    let guest = boot("expected");
    guest.assert_success();
    assert_eq!(guest.boot_json()["verdict"], "ready", "{:#}", guest.boot_json());
    assert_eq!(guest.file("networking"), "success\n");
    assert!(guest.file("addr").contains("192.168.78.9/24"), "{}", guest.file("addr"));
    guest
}

/// The one port of the HCA at `pci`.
fn port_of(report: &Value, pci: &str) -> Value {
    let ports = report["ports"].as_array().expect("ports");
    let of_it: Vec<&Value> = ports.iter().filter(|p| p["pci"] == pci).collect();
    let [port] = of_it[..] else { panic!("not one port of {pci}: {report:#}") };
    port.clone()
}

#[test]
fn a_vf_passed_through_to_this_machine_is_waited_for() {
    let port = port_of(&expected().boot_json(), "0000:03:00.0");
    assert_eq!(port["reached"], "named", "{port:#}");
}

#[test]
fn a_connectx3_bound_5_s_late_is_waited_for() {
    let report = expected().boot_json();
    let port = port_of(&report, "0000:04:00.0");
    assert_eq!(port["expected_by"], "its driver is mlx4_core");
    assert_eq!(port["reached"], "named", "{port:#}");
    let usec = |name: &str| report[name].as_u64().expect("time");
    let took = usec("finished_usec") - usec("started_usec");
    assert!(took > 3_000_000, "boot took {took} us: the driver was not late");
}

#[test]
fn of_four_ports_the_ethernet_one_is_seen_and_not_waited_for() {
    let report = expected().boot_json();
    let ports = report["ports"].as_array().expect("ports");
    let layers: Vec<(&str, u64, &str)> = ports
        .iter()
        .map(|p| {
            (
                p["pci"].as_str().expect("pci"),
                p["port"].as_u64().expect("port"),
                p["link_layer"].as_str().expect("link layer"),
            )
        })
        .collect();
    assert_eq!(
        layers,
        [
            ("0000:01:00.0", 1, "infiniband"),
            ("0000:01:00.0", 2, "infiniband"),
            ("0000:02:00.0", 1, "infiniband"),
            ("0000:02:00.0", 2, "ethernet"),
            ("0000:03:00.0", 1, "infiniband"),
            ("0000:04:00.0", 1, "infiniband"),
        ]
    );
}

#[test]
fn a_renamed_netdev_is_ready_only_under_its_final_name() {
    let guest = expected();
    let report = guest.boot_json();
    let ports = report["ports"].as_array().expect("ports");
    let renamed = ports.iter().find(|p| p["port_guid"] == "0002:c903:00bb:0001").expect("port");
    assert_eq!(renamed["netdev"], "ib-storage");
    let ready = guest.journal.0.iter().filter(|e| {
        e.field("MESSAGE_ID") == "5491926d039241e28588e22f466d308e"
            && e.field("IBPROV_GUID") == "0002:c903:00bb:0001"
    });
    let names: Vec<&str> = ready.map(|e| e.field("IBPROV_NETDEV")).collect();
    assert_eq!(names, ["ib-storage"], "never called ready under another name");
    assert!(guest.file("addr").contains("ib-storage"), "{}", guest.file("addr"));
    let kernel = guest.journal.kernel().find(|e| e.message.contains("renamed from ib"));
    assert!(kernel.is_some(), "the kernel renamed nothing: this proves nothing");
}
