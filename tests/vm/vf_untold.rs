//! A kernel that does not tell which GUIDs a PF has for its VFs, as before Linux 5.5: the
//! plan is carried out, VFs are verified by what they show, and the report says so.

use serde_json::{Value, json};

use crate::bed::outcome::Outcome;
use crate::machine::boot;
use crate::vf_faults::{assert_exit, cause, wrong};
use crate::vf_plan::{grown, planned};

const SHOWN: &str = "VFs 0-2 were verified only at their own devices";

fn guest() -> std::sync::Arc<Outcome> {
    let guest = boot("vf_untold");
    guest.assert_success();
    let netlink = guest.file("netlink");
    let tells = netlink.contains("vf 0 ") && !netlink.contains("NODE_GUID");
    assert!(tells, "the kernel tells GUIDs, so this proves nothing: {netlink}");
    guest
}

fn notes(pf: &Value) -> String {
    pf["findings"].to_string()
}

/// The facts of the first three VFs; the fourth has no driver.
fn shown(guest: &Outcome, name: &str) -> String {
    let facts = guest.file(name);
    let lines: Vec<&str> = facts.lines().filter(|l| !l.starts_with("3 ")).collect();
    assert_eq!(lines.len(), 4, "{facts}");
    lines.join("\n") + "\n"
}

#[test]
#[ignore = "card_plan has a driver that reports no GUIDs of VFs"]
fn a_plan_is_carried_out_and_verified_by_what_vfs_show() {
    let guest = guest();
    assert_eq!(shown(&guest, "fresh"), planned("0200:0070", 0, 3));
    let report = guest.boot_json();
    assert_eq!(report["verdict"], "ready", "{report:#}");
    let pf = &report["pfs"][0]["report"];
    let reached: Vec<&Value> =
        pf["vfs"].as_array().expect("VFs").iter().map(|v| &v["reached"]).collect();
    assert_eq!(json!(reached), json!(["verified", "verified", "verified", "guid"]), "{pf:#}");
    let notes = notes(pf);
    assert!(notes.contains(SHOWN), "{notes}");
    assert!(notes.contains("VF 3 was not verified for lack of a device on this host"), "{notes}");
}

/// What nothing shows is told again, and nothing else is touched.
#[test]
#[ignore = "card_plan has a driver that reports no GUIDs of VFs"]
fn a_second_run_tells_only_what_nothing_shows() {
    let guest = guest();
    assert_exit(&guest, "again", 0);
    let grown = grown(&guest, "counters.fresh", "counters.again");
    let want =
        [("mlx5_core/0000:01:00.0 set_node_guid", 1), ("mlx5_core/0000:01:00.0 set_port_guid", 1)];
    assert_eq!(grown, want.map(|(n, v)| (n.to_owned(), v)).into());
    assert_eq!(shown(&guest, "again"), planned("0200:0070", 0, 3));
}

#[test]
#[ignore = "card_plan has a driver that reports no GUIDs of VFs"]
fn another_plan_is_carried_out_too() {
    let guest = guest();
    assert_exit(&guest, "other", 0);
    assert_eq!(shown(&guest, "other"), planned("0200:0071", 0, 3));
}

#[test]
#[ignore = "card_plan has a driver that reports no GUIDs of VFs"]
fn a_vf_that_goes_on_with_its_old_guids_is_still_detected() {
    let guest = guest();
    assert_exit(&guest, "stale", 3);
    let report = guest.json("stale.json");
    let wrong = wrong(&report, 0);
    assert_eq!(wrong.len(), 1, "{report:#}");
    assert!(
        cause(wrong[0]).contains("although the VF was bound after its GUIDs were set"),
        "{report:#}"
    );
    let notes = notes(&report["pfs"][0]);
    assert!(notes.contains("VFs 0, 2 were verified only at"), "{notes}");
}
