//! 64 VFs, which an older kernel describes only to a program that offers enough room: it
//! estimates the size of a link too low (`rtnl_vfinfo_size()`, net/core/rtnetlink.c, until
//! 2025). The kernel of `make test-older` is one of those.

use std::sync::Arc;

use crate::bed::outcome::Outcome;
use crate::machine::{boot, scene};
use crate::vf_faults::assert_exit;
use crate::vf_plan::{grown, planned};

fn guest() -> Arc<Outcome> {
    let guest = boot("vf_many");
    guest.assert_success();
    guest
}

/// Without this the next tests show nothing.
#[test]
#[ignore = "64 VFs take long; only an older kernel has the fault: `make test-older`"]
fn an_older_kernel_has_no_answer_for_who_offers_little() {
    let is_older = guest().file("release").starts_with("5.10.");
    let offered = ["4096", "8192"].map(|size| scene("vf_many", &format!("offered {size}")));
    if is_older {
        assert_eq!(offered, ["0 EMSGSIZE"; 2]);
    }
    assert_eq!(scene("vf_many", "offered 65536"), "64 whole");
}

#[test]
#[ignore = "64 VFs take long; only an older kernel has the fault: `make test-older`"]
fn all_vfs_are_read_back() {
    let guest = guest();
    assert_eq!(guest.file("fresh"), planned("0200:0070", 0, 64));
    let report = guest.boot_json();
    assert_eq!(report["verdict"], "ready", "{report:#}");
    let pf = &report["pfs"][0]["report"];
    let vfs = pf["vfs"].as_array().expect("VFs");
    assert!(vfs.iter().all(|v| v["reached"] == "verified"), "{vfs:?}");
    assert!(!pf["findings"].to_string().contains("verified only"), "{pf:#}");
    let status = guest.json("status.json");
    let vfs = status["hcas"][0]["vfs"].as_array().expect("VFs");
    assert_eq!(vfs[63]["node_guid"], "0200:0070:0000:003f", "{status:#}");
    assert!(vfs.iter().all(|vf| vf["link_state"] == "follow"), "{vfs:?}");
}

#[test]
#[ignore = "64 VFs take long; only an older kernel has the fault: `make test-older`"]
fn what_was_read_back_is_not_told_again_and_another_plan_is_verified() {
    let guest = guest();
    assert_exit(&guest, "again", 0);
    assert!(grown(&guest, "counters.before", "counters.after").is_empty());
    assert_eq!(guest.file("again"), planned("0200:0070", 0, 64));
    assert_exit(&guest, "other", 0);
    assert_eq!(guest.file("other"), planned("0200:0071", 0, 64));
}
