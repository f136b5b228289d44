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
    let advice = disabled["advice"][0]["run"].as_str().expect("advice");
    assert!(advice.ends_with("ibprov migrate"), "{advice}");
}

/// ibprov.service was enabled on the running system, and the configuration is for the next boot.
#[test]
fn what_udev_starts_before_ibprov_has_begun_does_nothing_and_says_so() {
    assert_eq!(scene("triggered"), "inactive umcast=0 vfs=0");
    assert_eq!(scene("for-next-boot"), "inactive umcast=0 vfs=0");
    let guest = boot("not_enabled");
    assert_eq!(guest.file("acted"), "");
    let skipped = guest.file("skipped");
    assert!(skipped.contains("ibprov-iface@") && skipped.contains("ibprov-pf@"), "{skipped}");
    assert!(skipped.contains("systemctl start ibprov.service"), "{skipped}");
}

#[test]
fn a_configuration_for_the_next_boot_changes_nothing_that_is_in_use() {
    assert_eq!(scene("by-hand-in-use"), "inactive umcast=1 vfs=1");
    assert_ne!(scene("mtu start"), "2000");
    assert_eq!(scene("mtu by-hand"), scene("mtu start"));
    let guest = boot("not_enabled");
    let deferred = guest.file("deferred");
    assert!(deferred.contains("address 10.9.0.1/24") && deferred.contains("--force"), "{deferred}");
    let report = guest.json("in-use.json");
    let findings = report["findings"].as_array().expect("findings");
    let codes: Vec<_> = findings.iter().map(|f| f["code"].as_str().expect("code")).collect();
    assert!(codes.contains(&"setting-deferred"), "{codes:?}");
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
