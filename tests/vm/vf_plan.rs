//! The GUID plan by MLNX_OFED's files, which the simulated HCA alone has. By netlink,
//! on the distribution's own drivers: `card.rs`, `vf_faults.rs`.

use std::collections::BTreeMap;

use crate::bed::outcome::Outcome;
use crate::machine::boot;
use crate::vf_faults::{assert_exit, assert_stale, cause, wrong};

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
fn after_the_boot_all_vfs_are_verified() {
    let guest = boot("vf_plan");
    guest.assert_success();
    assert_eq!(guest.file("fresh"), planned("0200:0070", 0, 9));
    let report = guest.boot_json();
    assert_eq!(report["verdict"], "ready", "{report:#}");
    let pf = &report["pfs"][0]["report"];
    assert_eq!(pf["verdict"], "done", "{pf:#}");
    let vfs = pf["vfs"].as_array().expect("VFs");
    assert!(vfs.iter().all(|v| v["reached"] == "verified"), "{vfs:?}");
    guest.journal.expect("ibprov.service", "PF 0000:01:00.0: 9 of 9 VFs as planned");
}

#[test]
fn no_vf_is_probed_twice() {
    let guest = boot("vf_plan");
    let counters = counters(&guest, "counters.fresh");
    for vf in 1..=9 {
        let function = format!("mlx5_core/0000:01:{:02x}.{}", vf / 8, vf % 8);
        assert_eq!(counters.get(&format!("{function} probe")), Some(&1), "{function}");
        assert_eq!(counters.get(&format!("{function} remove")), Some(&0), "{function}");
    }
}

/// A run has changed nothing, and neither udev nor the kernel has heard of anything.
pub(crate) fn assert_untouched(guest: &Outcome) {
    for (file, own) in [("uevents", "heard"), ("link-events", "heard")] {
        let text = guest.file(file);
        // Debian 11's ip cannot follow links that have many VFs.
        if file == "link-events" && text.starts_with("Error: Buffer too small for object") {
            continue;
        }
        assert!(text.contains(own), "{file}: nothing was listened to");
        let ours = |l: &&str| {
            (l.contains("/0000:0") || l.contains("/0001:0") || l.contains(": ib"))
                && !l.contains(own)
        };
        assert_eq!(text.lines().filter(ours).collect::<Vec<_>>(), [""; 0], "{file}");
    }
}

#[test]
fn a_second_run_touches_nothing() {
    let guest = boot("vf_plan");
    assert_exit(&guest, "again", 0);
    assert_eq!(grown(&guest, "counters.before", "counters.after"), BTreeMap::new());
    assert_eq!(guest.json("again.json")["pfs"][0]["steps"], serde_json::json!([]));
    assert_untouched(&guest);
    assert_eq!(guest.file("again"), planned("0200:0070", 0, 9));
}

#[test]
fn one_changed_guid_is_one_rebind() {
    let guest = boot("vf_plan");
    assert_exit(&guest, "one", 0);
    let grown = grown(&guest, "counters.one-before", "counters.one-after");
    let want = [
        ("mlx5_core/0000:01:00.0 set_port_guid", 1),
        ("mlx5_core/0000:01:00.0 sysfs_write", 1),
        ("mlx5_core/0000:01:00.4 probe", 1),
        ("mlx5_core/0000:01:00.4 rdma_register", 1),
        ("mlx5_core/0000:01:00.4 rdma_unregister", 1),
        ("mlx5_core/0000:01:00.4 remove", 1),
    ];
    assert_eq!(grown, want.map(|(n, v)| (n.to_owned(), v)).into());
    assert_eq!(guest.file("one"), planned("0200:0070", 0, 9));
}

#[test]
fn a_guid_that_does_not_stick_in_the_vendors_files_is_detected() {
    let guest = boot("vf_plan");
    assert_exit(&guest, "four", 0);
    assert_exit(&guest, "dropped", 3);
    let report = guest.json("dropped.json");
    let wrong = wrong(&report, 0);
    assert_eq!(wrong.len(), 4);
    let said = cause(wrong[1]);
    let want = "the node GUID at the PF is 0200:0070:0000:0001 instead of 0200:0071:0000:0001";
    assert!(said.contains(want) && said.contains("the firmware ignored it"), "{said}");
    assert_exit(&guest, "set-now", 0);
    assert_eq!(guest.file("set-now"), planned("0200:0071", 0, 4));
}

#[test]
fn a_vf_that_goes_on_with_its_old_guid_is_detected_by_the_vendors_files() {
    let guest = boot("vf_plan");
    assert_stale(&guest, 0);
}

/// The kernel's own mlx5 driver never answers so: only the simulated one can.
#[test]
fn what_the_firmware_refuses_is_a_clear_error() {
    let guest = boot("vf_plan");
    assert_exit(&guest, "no-room", 3);
    let report = guest.json("no-room.json");
    let text = report["pfs"][0]["reason"].as_str().expect("text");
    assert!(text.contains("ENOSPC: No space left on device"), "{text}");
    assert!(text.contains("NUM_OF_VFS"), "{text}");
    assert_eq!(guest.file("no-room.facts"), "autoprobe 1\n");
}
