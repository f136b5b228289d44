//! ibprov is installed beside an enabled openibd, and not enabled. One boot.

use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("not_enabled", name)
}

#[test]
fn installed_and_not_enabled_it_changes_nothing() {
    assert_eq!(scene("boot"), "inactive umcast=0 vfs=0");
    assert_eq!(scene("anew"), "inactive umcast=0 vfs=0");
    let guest = boot("not_enabled");
    assert_eq!(guest.file("units"), "ibprov-not-enabled.target\n");
    assert!(guest.file("run").contains("No such file"), "{}", guest.file("run"));
}

#[test]
fn it_says_so_in_one_line_a_boot() {
    let guest = boot("not_enabled");
    let lines = guest.file("lines");
    assert!(lines.contains("ibprov.service is not enabled"), "{lines:?}");
    assert_eq!(lines.lines().count(), 1, "{lines}");
    // An interface that comes later is no reason to say it again.
    assert_eq!(guest.file("count"), "1\n");
    let status = guest.json("status.json");
    assert_eq!(status["units"]["enabled"], false);
    let findings = status["findings"].as_array().expect("findings");
    let disabled = findings.iter().find(|f| f["code"] == "ibprov-disabled").expect("told");
    let advice = disabled["advice"][0]["text"].as_str().expect("advice");
    assert!(advice.ends_with("ibprov migrate"), "{advice}");
}

#[test]
fn what_comes_while_boot_is_running_is_set_though_it_is_not_enabled() {
    assert_eq!(scene("by-hand"), "active umcast=1 vfs=1");
    assert_eq!(scene("after-it"), "inactive umcast=0 vfs=1");
    assert_eq!(scene("killed"), "inactive umcast=0 vfs=1");
}

#[test]
fn enabled_disabled_and_masked_count_from_the_next_device_on() {
    assert_eq!(scene("enabled"), "active umcast=1 vfs=1");
    assert_eq!(scene("masked"), "inactive umcast=0 vfs=1");
    assert_eq!(scene("disabled"), "inactive umcast=0 vfs=1");
}
