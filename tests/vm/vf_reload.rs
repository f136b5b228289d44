//! The distribution's mlx5 drivers are reloaded while VFs are planned.

use crate::card::assert_sound;
use crate::machine::boot;
use crate::vf_faults::assert_exit;
use crate::vf_plan::{grown, planned};

/// The card keeps the GUIDs, and each VF has its RDMA device again.
#[test]
fn when_mlx5_ib_was_reloaded_the_vfs_are_as_planned() {
    let guest = boot("vf_reload");
    guest.assert_success();
    assert_sound(&guest);
    assert_eq!(guest.file("fresh"), planned("0200:0070", 0, 2));
    assert_eq!(guest.file("rdma"), planned("0200:0070", 0, 2));
    assert_exit(&guest, "rdma", 0);
    assert!(grown(&guest, "counters.before", "counters.after").is_empty());
}

#[test]
fn when_the_drivers_were_reloaded_the_plan_is_carried_out_without_a_hand() {
    let guest = boot("vf_reload");
    assert!(guest.stdout().contains("somebody cared\n"), "{}", guest.stdout());
    assert_eq!(guest.file("all"), planned("0200:0070", 0, 2));
}

/// One without a netdev anywhere is told from one whose netdev a container has, which
/// `vf_use` shows, by what ib_ipoib owns of its RDMA device.
#[test]
fn a_vf_for_which_ipoib_failed_is_not_as_planned_and_is_bound_again() {
    let guest = boot("vf_reload");
    let said = guest.stdout();
    let failed = guest.file("failed");
    let first = failed.lines().next().unwrap_or_default();
    assert!(first.starts_with("0 mlx5_core ") && first.ends_with(" -"), "{failed}");
    let plan = guest.file("failed.plan");
    assert!(plan.contains("ib_ipoib has not created a netdev for the VF"), "{plan}");
    assert!(!plan.contains("VF 1"), "{plan}");
    assert!(said.contains("plan: 1\n") && said.contains("\nstatus: 3\n"), "{said}");
    assert_exit(&guest, "ipoib", 0);
    assert_eq!(guest.file("mended"), planned("0200:0070", 0, 2));
    assert!(said.contains("status at the end: 0\n"), "{said}\n{}", guest.file("mended.status"));
    let grown = grown(&guest, "counters.failed", "counters.mended");
    let probed: Vec<&String> = grown.keys().filter(|c| c.ends_with(" probe")).collect();
    assert_eq!(probed, ["ibcard/0001:01:00.1 probe"], "VF 1 is not touched: {grown:?}");
}

/// It cannot be told by sysfs from one whose RDMA device is in another network namespace, which
/// there is only where each device belongs to one.
#[test]
fn a_vf_whose_rdma_device_is_still_to_come_is_in_no_container() {
    let guest = boot("vf_reload");
    let said = guest.stdout();
    assert!(said.contains("the RDMA device of VF 0 is waited for\n"), "{said}");
    assert!(!said.contains("does not come") && !said.contains("/infiniband\n"), "{said}");
    assert_exit(&guest, "probing", 0);
    assert_eq!(guest.file("probing"), planned("0200:0071", 0, 2));
}

/// It has no netdev anywhere yet, as one for which ib_ipoib has failed.
#[test]
fn a_vf_for_which_ipoib_is_still_to_come_is_not_bound_again() {
    let guest = boot("vf_reload");
    assert!(!guest.stdout().contains("no RDMA device comes"), "{}", guest.stdout());
    assert_exit(&guest, "registering", 0);
    let report = guest.json("registering.json");
    assert_eq!(report["pfs"][0]["steps"], serde_json::json!([]), "{report:#}");
}

/// As on a node with hundreds of disks, whose events come first.
#[test]
fn names_are_waited_for_as_long_as_udev_has_something_to_do() {
    let guest = boot("vf_reload");
    let said = guest.stdout();
    assert!(said.contains("still waited for\n"), "{said}");
    assert!(said.contains("names: rail0v0 rail0v1 \n"), "{said}");
    assert_exit(&guest, "busy", 0);
}

#[test]
fn vfs_of_a_pf_whose_plan_was_removed_get_no_names_any_more() {
    let guest = boot("vf_reload");
    let said = guest.stdout();
    assert!(said.contains("rules: 1\n"), "{said}");
    assert!(said.contains("rules left: 0\n"), "{said}");
    assert!(said.contains("called rail: 0\n"), "{said}");
}
