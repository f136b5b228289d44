//! Soft RoCE: the distribution's rdma_rxe, rdma-core's rules and user space. One boot.

use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("soft_roce", name)
}

#[test]
fn a_netdev_that_is_there_has_its_device_after_the_boot() {
    let guest = boot("soft_roce");
    guest.assert_success();
    let report = guest.json("first.json");
    // eth2 has not come yet: exit 1, and the unit is active all the same.
    assert_eq!(report["verdict"], "exceptions", "{report:#}");
    assert_eq!(guest.file("result"), "success\n");
    let state = |name: &str| {
        let all = report["rxe"].as_array().expect("soft RoCE devices");
        let own = all.iter().find(|rxe| rxe["name"] == name);
        own.unwrap_or_else(|| panic!("no {name} in {report:#}"))["state"].clone()
    };
    assert_eq!(state("rxe0"), "present");
    assert_eq!(state("later"), "no-netdev");
    let modules = report["modules"].as_array().expect("modules");
    let ipoib = modules.iter().find(|module| module["name"] == "ib_ipoib").expect("ib_ipoib");
    assert_eq!(ipoib["outcome"], "not-needed");
}

#[test]
fn it_keeps_its_name_and_has_a_gid_for_its_address() {
    assert_eq!(scene("rxe0"), "eth1");
    assert_eq!(scene("entry"), "RoCE v2 0000:0000:0000:0000:0000:ffff:0a07:0001");
    assert_eq!(scene("state"), "4: ACTIVE");
    let guest = boot("soft_roce");
    let link = guest.file("rdma-link");
    assert!(link.contains("rxe0/1 state ACTIVE") && link.contains("netdev eth1"), "{link}");
    let status = guest.file("status");
    assert!(status.contains("soft RoCE: rxe0 (eth1): ready\n"), "{status}");
    assert!(status.contains("10.7.0.1"), "{status}");
    // The netdev of the other has not come.
    assert_eq!(scene("status"), "1");
}

#[test]
fn it_is_waited_for_as_a_port() {
    let guest = boot("soft_roce");
    let report = guest.json("online.json");
    // As status: exit 1 while the netdev of one has not come.
    assert_eq!(scene("online"), "1", "{report:#}");
    let ports = report["ports"].as_array().expect("ports");
    let told: Vec<_> =
        ports.iter().map(|p| (&p["expected"], &p["online"], &p["missing"])).collect();
    let want = serde_json::json!([["rxe0", true, null], ["later", false, "netdev"]]);
    assert_eq!(serde_json::json!(told), want, "{report:#}");
    assert_eq!(scene("online-rxe0"), "0", "{}", guest.file("online-rxe0"));
    assert!(guest.file("online-rxe0").contains("10.7.0.1"), "{}", guest.file("online-rxe0"));
    assert_eq!(scene("online-down"), "3", "{}", guest.file("online-down"));
    assert!(guest.file("online-down").contains("eth1 is down"), "{}", guest.file("online-down"));
    assert_eq!(scene("online-both"), "0", "{}", guest.file("online-both"));
}

#[test]
fn two_queue_pairs_of_it_exchange_messages() {
    let guest = boot("soft_roce");
    let (server, client) = (guest.file("server"), guest.file("client"));
    assert_eq!(scene("client"), "0", "{client}\nserver: {server}");
    assert_eq!(scene("server"), "0", "{server}");
    assert!(client.contains("100 iters"), "{client}");
}

#[test]
fn it_comes_back_with_its_netdev() {
    assert!(!scene("gone").contains("rxe0"), "the kernel removes it");
    for name in ["again", "unit", "late"] {
        assert_eq!(scene(name), "0", "{name}");
    }
    let guest = boot("soft_roce");
    let report = guest.json("second.json");
    assert_eq!(scene("restart"), "active");
    assert_eq!(report["verdict"], "ready", "{report:#}");
    let steps = report["steps"].as_array().expect("steps");
    assert!(steps.iter().all(|step| step["step"] != "create-rxe"), "it is there: {report:#}");
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let guest = boot("soft_roce");
    for (name, reason) in [
        ("apart", "this process is in a network namespace of its own"),
        ("vlan", "eth1.7 is a VLAN: name its parent in [[rxe]]"),
        ("other", "eth1 has the soft RoCE device rxe0"),
    ] {
        assert_ne!(scene(name), "0", "{name}");
        let said = guest.file(name);
        assert!(said.contains(reason), "{name}: {said}");
    }
}

#[test]
fn one_that_is_removed_from_the_configuration_is_left_alone() {
    assert_eq!(scene("left"), "eth1");
    assert_eq!(scene("removed"), "0");
    let told = boot("soft_roce").file("removed");
    assert!(
        told.contains("rxe0 (eth1): soft RoCE device on eth1 is not in the configuration"),
        "{told}"
    );
}
