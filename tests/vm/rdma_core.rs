//! With rdma-core installed, which loads modules by udev's events while ibprov
//! does: network and report are right, whoever comes first.

use crate::bed::journal::assert_in_order;
use crate::bed::outcome::Outcome;
use crate::machine::boot;
use crate::seed::assert_up;

#[test]
#[ignore = "rdma_core_late shows the same, with a late RDMA device"]
fn rdma_core_at_the_same_time_does_no_harm() {
    let guest = boot("rdma_core");
    assert_up(&guest);
    assert_right(&guest);
    assert_ordered(&guest);
}

#[test]
fn rdma_core_that_comes_late_does_no_harm() {
    let guest = boot("rdma_core_late");
    assert_up(&guest);
    assert_right(&guest);
    let report = guest.boot_json();
    let usec = |name: &str| report[name].as_u64().expect("time");
    let took = usec("finished_usec") - usec("started_usec");
    assert!(took > 2_000_000, "boot took {took} us: the RDMA device was not late");
}

#[test]
fn the_network_comes_after_ibprov_and_no_order_is_dropped() {
    assert_ordered(&boot("rdma_core_late"));
}

fn assert_ordered(guest: &Outcome) {
    let journal = &guest.journal;
    assert_in_order(&[
        ("ibprov.service", journal.started("ibprov.service")),
        ("network-pre.target", journal.started("network-pre.target")),
        ("networking.service", journal.started("networking.service")),
    ]);
    // rdma-core's targets and services stand in the same graph.
    journal.started("rdma-hw.target");
    assert_eq!(guest.ordering_cycles(), Vec::<String>::new());
}

/// Both have loaded, and the report knows the RDMA device by the name that
/// rdma-core's rule gave it.
fn assert_right(guest: &Outcome) {
    for set in ["rdma", "infiniband"] {
        let unit = guest.file(&format!("load-{set}"));
        let ran = unit.contains("ActiveState=active\n") && unit.contains("Result=success\n");
        assert!(ran, "rdma-core did not load anything, this proves nothing: {unit}");
    }
    let report = guest.boot_json();
    assert_eq!(report["verdict"], "ready", "{report}");
    assert_eq!(report["findings"], serde_json::json!([]));
    let modules = report["modules"].as_array().expect("modules");
    let there = |m: &serde_json::Value| m["outcome"] == "loaded" || m["outcome"] == "already-there";
    assert!(modules.len() == 3 && modules.iter().all(there), "{modules:?}");
    let rdma = guest.file("rdma");
    assert_ne!(rdma, "mlx5_0\n", "rdma-core renamed nothing");
    let port = &report["ports"][0];
    assert_eq!(port["rdma"], rdma.trim(), "{report}");
    assert_eq!(port["netdev"], "ib0");
    assert!(guest.stdout().contains("status: 0\n"), "{}", guest.file("status"));
}
