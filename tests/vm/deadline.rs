//! What does not come does not stop the boot.

use std::time::Duration;

use crate::bed::outcome::Outcome;
use crate::machine::boot;
use crate::seed::assert_up;

#[test]
fn an_hca_that_never_comes_fails_the_unit_and_not_the_boot() {
    let guest = boot("never");
    guest.journal.started("multi-user.target");
    guest.journal.failed("ibprov.service");
    let report = guest.json("boot-first.json");
    assert_eq!(report["exit_code"], 3);
    let unit = guest.file("unit");
    assert!(unit.contains("Result=exit-code\n") && unit.contains("ExecMainStatus=3\n"), "{unit}");
}

#[test]
fn the_other_hca_is_up() {
    assert_up(&boot("never"));
}

#[test]
fn the_missing_rung_and_its_cause_are_named() {
    let guest = boot("never");
    let report = guest.json("boot-first.json");
    let ports = report["ports"].as_array().expect("ports");
    let missing = ports.iter().find(|p| p["pci"] == "0000:02:00.0").expect("the second HCA");
    assert_eq!(missing["missing"], "rdma");
    assert_eq!(
        missing["cause"]["text"],
        "driver mlx5_core is bound and has registered no RDMA device"
    );
    guest.journal.expect("ibprov.service", "0000:02:00.0: NOT READY: reached driver, missing rdma");
}

#[test]
fn a_stuck_probe_delays_the_network_by_no_more_than_2_s() {
    let guest = boot("stuck_probe");
    assert_in_time(&guest, Duration::from_secs(10));
    assert_eq!(guest.boot_json()["exit_code"], 3);
}

#[test]
fn a_stuck_module_load_delays_the_network_by_no_more_than_2_s() {
    let guest = boot("stuck_module");
    assert_in_time(&guest, Duration::from_secs(10));
    guest.journal.started("multi-user.target");
    let report = guest.boot_json();
    let modules = report["modules"].as_array().expect("modules");
    let stuck = modules.iter().find(|m| m["name"] == "mlx4_core").expect("mlx4_core");
    assert_eq!(stuck["trouble"]["cause"], "stuck", "{stuck}");
    assert_up(&guest);
}

/// network-pre.target was reached within 2 s of the deadline, and after it.
fn assert_in_time(guest: &Outcome, deadline: Duration) {
    let started = guest.boot_json()["started_usec"].as_u64().expect("time");
    let due = Duration::from_micros(started) + deadline;
    let reached = guest.journal.started("network-pre.target");
    assert!(reached >= due, "reached {reached:?}, before the deadline {due:?}: nothing was stuck");
    let late = reached - due;
    assert!(late <= Duration::from_secs(2), "network-pre.target {late:?} after the deadline");
}
