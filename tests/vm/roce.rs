//! A RoCE rail: an expected port in Ethernet mode, from its name to the GID of its address.

use serde_json::Value;

use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("roce", name)
}

#[test]
#[ignore = "tree roce:: has such a port, and soft_roce what the kernel has for its address"]
fn boot_waits_for_the_name_of_its_netdev() {
    let guest = boot("roce");
    guest.assert_success();
    assert_eq!(scene("result"), "success success");
    let report = guest.json("boot");
    assert_eq!(report["verdict"], "ready", "{report:#}");
    let ports = report["ports"].as_array().expect("ports");
    let rail = ports.iter().find(|port| port["netdev"] == "eth0");
    let rail = rail.unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(rail["ready"], true, "{report:#}");
}

#[test]
#[ignore = "tree roce:: has such a port, and soft_roce what the kernel has for its address"]
fn it_is_ready_with_the_gid_of_its_address() {
    let guest = boot("roce");
    assert_eq!(scene("online"), "0", "{}", guest.file("online"));
    assert_eq!(scene("status"), "0", "{}", guest.file("status"));
    assert!(guest.file("status").contains("10.0.0.7"), "{}", guest.file("status"));
    assert_eq!(scene("index"), "0", "{}", guest.file("index.stderr"));
    assert_eq!(scene("entry"), "RoCE v2 0000:0000:0000:0000:0000:ffff:0a00:0007");
}

/// What the first port of a report of wait-online is missing.
fn missing(name: &str) -> Value {
    boot("roce").json(name)["ports"][0]["missing"].clone()
}

#[test]
#[ignore = "tree roce:: has such a port, and soft_roce what the kernel has for its address"]
fn it_is_said_what_it_lacks() {
    let guest = boot("roce");
    assert_eq!(scene("no-address"), "3", "{}", guest.file("no-address"));
    assert_eq!(missing("no-address"), "gid", "{}", guest.file("no-address"));
    assert_eq!(scene("no-index"), "3", "{}", guest.file("no-index.stderr"));
    assert_eq!(scene("no-cable"), "3", "{}", guest.file("no-cable"));
    assert_eq!(missing("no-cable"), "carrier", "{}", guest.file("no-cable"));
    // The InfiniBand port beside it is active.
    assert_eq!(scene("status-no-cable"), "1", "{}", guest.file("status-text"));
    let finding = &guest.json("status-no-cable")["findings"][0];
    assert_eq!(finding["code"], "port-not-active", "{}", guest.file("status-text"));
    assert_eq!(scene("unbound"), "3", "{}", guest.file("unbound"));
}

#[test]
#[ignore = "tree roce:: has such a port, and soft_roce what the kernel has for its address"]
fn what_comes_again_is_ready_again() {
    for name in ["address-again", "cable-again", "bound-again"] {
        assert_eq!(scene(name), "0", "{name}: {}", boot("roce").file(name));
    }
}
