//! netplan of Debian's next release: its files for systemd-networkd are written during the boot.

use crate::machine::boot;

#[test]
#[ignore = "in the world of Debian's next release: make test-newest"]
fn boot_comes_after_netplan_and_says_what_its_configuration_sets_otherwise() {
    let guest = boot("netplan");
    guest.assert_success();
    assert_eq!(guest.stdout(), "", "{}", guest.file("addr"));
    assert!(guest.file("written").contains("netplan-ib0.network"), "{}", guest.file("written"));
    let usec = |name: &str| guest.file(name).trim().parse::<u64>().expect("microseconds");
    let (configured, began) = (usec("configured"), usec("boot-began"));
    assert!(0 < configured && configured < began, "{configured} {began}");
    let status = guest.json("status.json");
    let findings = status["findings"].as_array().expect("findings");
    let of_netplan = findings.iter().find(|f| f["object"] == "ib0").expect("a finding of ib0");
    let told = of_netplan.to_string();
    assert!(told.contains("MTU") && told.contains("/etc/netplan"), "{told}");
    let dry_run = guest.file("dry-run");
    assert!(dry_run.contains("systemd-networkd"), "{dry_run}");
    assert!(!dry_run.contains("were not judged"), "its files are written by now: {dry_run}");
}
