//! The RDMA network namespace mode, on the distribution's own ib_core: set at boot, and
//! refused while there is another network namespace. The boot of `vf_netns`.

use serde_json::Value;

use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("vf_netns", name)
}

/// The step of a boot that sets the mode.
fn step(report: &Value) -> Option<Value> {
    let steps = report["steps"].as_array().expect("steps");
    steps.iter().find(|step| step["step"] == "netns-mode").cloned()
}

#[test]
fn the_mode_is_set_as_the_node_boots() {
    assert_eq!(scene("booted"), "exclusive");
    assert_eq!(scene("booted status"), "0", "{}", boot("vf_netns").file("booted.status"));
    let report = boot("vf_netns").json("booted.boot.json");
    assert_eq!(report["verdict"], "ready", "{report:#}");
    let step = step(&report).expect("a step");
    assert_eq!((&step["mode"], &step["reason"]), (&"exclusive".into(), &Value::Null), "{step:#}");
}

#[test]
fn the_unit_that_keeps_the_mode_is_named() {
    let guest = boot("vf_netns");
    assert_eq!((scene("held"), scene("held status")), ("exclusive".to_owned(), "1".to_owned()));
    let report = guest.json("held.boot.json");
    assert_eq!((&report["verdict"], &report["exit_code"]), (&"exceptions".into(), &1.into()));
    let step = step(&report).expect("a step");
    let reason = step["reason"].as_str().expect("a reason");
    for want in ["EBUSY", "hold.service", "options ib_core netns_mode=1", "initramfs"] {
        assert!(reason.contains(want), "{want}: {reason}");
    }
    let status = guest.json("held.json");
    let findings = status["findings"].as_array().expect("findings").iter();
    assert_eq!(findings.filter(|f| f["code"] == "netns-mode").count(), 1, "{status:#}");
}

#[test]
fn once_nothing_keeps_it_the_mode_is_set() {
    assert_eq!(
        (scene("released"), scene("released status")),
        ("shared".to_owned(), "0".to_owned())
    );
}
