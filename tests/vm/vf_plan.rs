//! The GUID plan, applied by both of mlx5's interfaces.

use std::collections::BTreeMap;

use crate::bed::outcome::Outcome;
use crate::machine::boot;

const BACKENDS: [(&str, u32); 2] = [("ofed", 0), ("mainline", 1)];

/// The facts of a PF with that many VFs as planned: GUIDs that begin with
/// `first`, as the scenarios' template has them.
pub(crate) fn planned(first: &str, pf: u32, vfs: u32) -> String {
    let vf = |n: u32| {
        let (node, port) =
            (format!("{first}:{pf:02x}00:{n:04x}"), format!("{first}:{pf:02x}01:{n:04x}"));
        let digits = port.replace(':', "");
        let bytes: Vec<&str> = (0..8).map(|i| &digits[2 * i..2 * i + 2]).collect();
        format!("{n} mlx5_core (null) {node} {port} {}\n", bytes.join(":"))
    };
    (0..vfs).map(vf).collect::<String>() + "autoprobe 1\n"
}

fn assert_planned(guest: &Outcome, name: &str, first: &str) {
    for (backend, pf) in BACKENDS {
        assert_eq!(
            guest.file(&format!("{name}.{backend}")),
            planned(first, pf, 16),
            "{name} {backend}"
        );
    }
}

/// `FUNCTION COUNTER` to its value, from a file of `counters` in vf.sh.
pub(crate) fn counters(guest: &Outcome, name: &str) -> BTreeMap<String, i64> {
    let text = guest.file(name);
    let line = |l: &str| {
        let (name, value) = l.rsplit_once(' ').expect("name and value");
        (name.to_owned(), value.parse().expect("number"))
    };
    text.lines().map(line).collect()
}

/// By how much counters have grown.
pub(crate) fn grown(guest: &Outcome, before: &str, after: &str) -> BTreeMap<String, i64> {
    let (before, after) = (counters(guest, before), counters(guest, after));
    let by =
        |(name, value): (&String, &i64)| (name.clone(), value - before.get(name).unwrap_or(&0));
    after.iter().map(by).filter(|(_, by)| *by != 0).collect()
}

#[test]
fn after_the_boot_all_16_vfs_of_both_pfs_are_verified() {
    let guest = boot("vf_plan");
    assert_planned(&guest, "fresh", "0200:0070");
    let report = guest.boot_json();
    assert_eq!(report["verdict"], "ready", "{report:#}");
    for pf in 0..2 {
        let pf = &report["pfs"][pf]["report"];
        assert_eq!(pf["verdict"], "right", "{pf:#}");
        let vfs = pf["vfs"].as_array().expect("VFs");
        assert!(vfs.iter().all(|v| v["reached"] == "verified"), "{vfs:?}");
    }
    guest.journal.expect("ibprov.service", "PF 0000:01:00.0: 16 of 16 VFs as planned");
}

#[test]
fn no_vf_is_probed_twice() {
    let guest = boot("vf_plan");
    let counters = counters(&guest, "counters.fresh");
    for bus in ["01", "02"] {
        for vf in 1..=16 {
            let function = format!("mlx5_core/0000:{bus}:{:02x}.{}", vf / 8, vf % 8);
            assert_eq!(counters.get(&format!("{function} probe")), Some(&1), "{function}");
            assert_eq!(counters.get(&format!("{function} remove")), Some(&0), "{function}");
        }
    }
}

#[test]
fn a_second_run_touches_nothing() {
    let guest = boot("vf_plan");
    assert!(guest.stdout().contains("again: 0\n"), "{}", guest.stdout());
    assert_eq!(grown(&guest, "counters.before", "counters.after"), BTreeMap::new());
    let report = guest.json("again.json");
    assert_eq!(report["pfs"][0]["steps"], serde_json::json!([]));
    assert_eq!(report["pfs"][1]["steps"], serde_json::json!([]));
    for (file, own) in [("uevents", "heard"), ("link-events", "heard")] {
        let text = guest.file(file);
        let ours = |l: &&str| (l.contains("/0000:0") || l.contains(": ib")) && !l.contains(own);
        assert_eq!(text.lines().filter(ours).collect::<Vec<_>>(), [""; 0], "{file}");
    }
    assert_planned(&guest, "again", "0200:0070");
}

#[test]
fn one_changed_guid_is_one_rebind() {
    let guest = boot("vf_plan");
    assert!(guest.stdout().contains("one: 0\n"), "{}", guest.stdout());
    let grown = grown(&guest, "counters.one-before", "counters.one-after");
    let want = [
        ("mlx5_core/0000:01:00.0 set_port_guid", 1),
        ("mlx5_core/0000:01:00.0 sysfs_write", 1),
        ("mlx5_core/0000:01:00.4 probe", 1),
        ("mlx5_core/0000:01:00.4 rdma_register", 1),
        ("mlx5_core/0000:01:00.4 rdma_unregister", 1),
        ("mlx5_core/0000:01:00.4 remove", 1),
        // By netlink both GUIDs are told again before a VF is bound anew.
        ("mlx5_core/0000:02:00.0 set_node_guid", 1),
        ("mlx5_core/0000:02:00.0 set_port_guid", 1),
        ("mlx5_core/0000:02:00.4 probe", 1),
        ("mlx5_core/0000:02:00.4 rdma_register", 1),
        ("mlx5_core/0000:02:00.4 rdma_unregister", 1),
        ("mlx5_core/0000:02:00.4 remove", 1),
    ];
    assert_eq!(grown, want.map(|(n, v)| (n.to_owned(), v)).into());
    assert_planned(&guest, "one", "0200:0070");
}
