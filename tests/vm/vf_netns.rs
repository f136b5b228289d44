//! RDMA devices of VFs in other network namespaces: in use, whether the kernel shows that
//! there is one, by an auxiliary device, or not, as mlx5 before Linux 5.11.

use std::sync::Arc;

use crate::bed::outcome::Outcome;
use crate::card::assert_sound;
use crate::machine::{boot, scene};
use crate::vf_faults::assert_exit;
use crate::vf_plan::{grown, planned};

fn guest() -> Arc<Outcome> {
    let guest = boot("vf_netns");
    guest.assert_success();
    assert_sound(&guest);
    guest
}

/// The lines of the VFs but VF 0.
fn others(facts: &str) -> Vec<&str> {
    facts.lines().filter(|line| !line.starts_with("0 ")).collect()
}

#[test]
fn an_rdma_device_belongs_to_the_function_with_and_without_an_auxiliary_device() {
    let guest = guest();
    assert!(guest.file("mode").contains("netns exclusive"), "{}", guest.file("mode"));
    assert_eq!(guest.file("fresh"), planned("0200:0070", 0, 3));
    assert_eq!(scene("vf_netns", "parent"), "0001:01:00.1");
    let is_older = guest.file("release").starts_with("5.10.");
    assert_eq!(guest.file("halves").is_empty(), is_older, "{}", guest.file("halves"));
}

#[test]
fn a_vf_whose_rdma_device_is_not_seen_is_in_use() {
    let guest = guest();
    let pod = guest.file("in-pod");
    assert_eq!(pod.lines().count(), 1, "{pod}");
    assert_exit(&guest, "other", 1);
    let report = guest.json("other.json");
    let vfs = report["pfs"][0]["vfs"].as_array().expect("VFs");
    let deferred: Vec<bool> = vfs.iter().map(|vf| vf["deferred"] == true).collect();
    assert_eq!(deferred, [true, false, false], "{report:#}");
    let is_older = guest.file("release").starts_with("5.10.");
    let why = if is_older {
        "its RDMA device may be in another network namespace"
    } else {
        "its RDMA device is not in this network namespace"
    };
    let log = guest.file("other.log");
    assert!(log.contains(why), "want {why:?} in:\n{log}");
    assert_eq!(guest.file("in-pod.after"), pod);
    let grown = grown(&guest, "counters.before", "counters.after");
    let removed: Vec<&String> = grown.keys().filter(|c| c.ends_with(" remove")).collect();
    assert_eq!(removed, ["ibcard/0001:01:00.2 remove", "ibcard/0001:01:00.3 remove"]);
    let after = guest.file("after");
    let want = planned("0200:0071", 0, 3);
    assert_eq!(others(&after), others(&want));
}

#[test]
fn the_number_of_vfs_stays_meanwhile() {
    let guest = guest();
    assert_exit(&guest, "fewer", 1);
    let log = guest.file("fewer.log");
    assert!(log.contains("the number of VFs stays 3 instead of 1"), "{log}");
    assert_eq!(guest.file("fewer").lines().count(), 4, "{}", guest.file("fewer"));
}

#[test]
fn once_it_is_seen_the_vf_is_as_planned() {
    let guest = guest();
    assert_exit(&guest, "free", 0);
    assert_eq!(guest.file("free"), planned("0200:0071", 0, 3));
}
