//! The real binary, under its real unit, where something it needs is missing:
//! it says so, ends in time with the right code, and costs nobody the network.

use crate::bed::journal::{Journal, listing};
use crate::bed::outcome::Outcome;
use crate::nspawn::boot;

/// The journal of one run of ibprov.service in `surroundings`.
fn journal(guest: &Outcome, run: &str) -> Journal {
    Journal::parse(&guest.file(&format!("{run}.journal"))).expect("journal")
}

/// Asserts that the run said `text`, and returns the entry's field `field`.
fn said(journal: &Journal, text: &str, field: &str) -> String {
    match journal.find(text) {
        Some(entry) => entry.field(field).to_owned(),
        None => panic!("nothing with {text:?}, but:\n{}", listing(journal.0.iter())),
    }
}

const NOT_READY: &str = "ActiveState=failed\nExecMainStatus=3\nResult=exit-code\n";
/// The event of a finished boot (docs: MESSAGE_ID).
const FINISHED: &str = "0 of 1 expected ports ready";

/// What `systemctl show` printed of the unit, in a fixed order.
fn unit(guest: &Outcome, run: &str) -> String {
    let mut lines: Vec<String> =
        guest.file(&format!("{run}.unit")).lines().map(|l| format!("{l}\n")).collect();
    lines.sort();
    lines.concat()
}

/// How long the run took, seconds.
fn took(guest: &Outcome, run: &str) -> f64 {
    let report = guest.json(&format!("{run}.json"));
    let usec = |name: &str| report[name].as_f64().expect("time");
    (usec("finished_usec") - usec("started_usec")) / 1e6
}

#[test]
fn a_port_that_never_comes_fails_the_unit_at_the_deadline_and_the_network_starts() {
    let guest = boot("surroundings");
    guest.assert_success();
    assert_eq!(unit(&guest, "boot"), NOT_READY);
    assert_eq!(guest.file("networking"), "ActiveState=active\n");
    let seconds = took(&guest, "boot");
    assert!((2.0..4.0).contains(&seconds), "took {seconds} s under a deadline of 2 s");
    let text = "no such PCI function or RDMA device on this host";
    said(&journal(&guest, "boot"), text, "MESSAGE");
}

#[test]
fn the_report_outlives_the_failed_unit() {
    let guest = boot("surroundings");
    guest.assert_success();
    assert_eq!(guest.json("boot.json")["verdict"], "not-ready");
}

#[test]
fn without_udevd_it_says_so_and_waits_for_nothing() {
    let guest = boot("surroundings");
    guest.assert_success();
    assert_eq!(unit(&guest, "no-udevd"), NOT_READY);
    let text = "systemd-udevd, which names it, is not running";
    assert_eq!(said(&journal(&guest, "no-udevd"), text, "IBPROV_NETDEV"), "ib0");
    let seconds = took(&guest, "no-udevd");
    assert!(seconds < 30.0, "took {seconds} s for what cannot change");
}

/// A boot is no fault of the node; a later run and one by hand are no boot.
#[test]
fn only_the_first_run_of_the_unit_makes_what_it_waits_for_unknown() {
    let guest = boot("surroundings");
    guest.assert_success();
    assert_eq!(
        guest.file("in-progress"),
        "first: 2 UNKNOWN: boot-in-progress\nlater: 1 NOT READY: port-not-ready mlx5_0/1\nby-hand: 1 NOT READY: port-not-ready mlx5_0/1\n"
    );
}

#[test]
fn with_run_read_only_the_report_is_in_the_journal() {
    let guest = boot("surroundings");
    guest.assert_success();
    assert_eq!(unit(&guest, "read-only"), NOT_READY);
    assert!(!guest.out.join("read-only.json").exists(), "/run was not read-only");
    let journal = journal(&guest, "read-only");
    said(&journal, "cannot write /run/ibprov/boot.json: EROFS: Read-only file system", "MESSAGE");
    assert_eq!(said(&journal, FINISHED, "IBPROV_EXIT"), "3");
}

#[test]
fn without_journald_it_writes_to_standard_error() {
    let guest = boot("surroundings");
    guest.assert_success();
    assert_eq!(unit(&guest, "no-sockets"), NOT_READY);
    // systemd had connected standard error to the journal before.
    let journal = journal(&guest, "no-sockets");
    assert_eq!(said(&journal, FINISHED, "_TRANSPORT"), "stdout");
    let seconds = took(&guest, "no-sockets");
    assert!(seconds < 30.0, "took {seconds} s under a deadline of 2 s");
}

#[test]
fn the_kernel_command_line_shortens_the_deadline() {
    let guest = boot("surroundings");
    guest.assert_success();
    assert_eq!(unit(&guest, "deadline"), NOT_READY);
    assert_eq!(guest.json("deadline.json")["timeout_sec"], 1);
    let seconds = took(&guest, "deadline");
    assert!((1.0..2.0).contains(&seconds), "took {seconds} s under a deadline of 1 s");
    let text = r#"kernel command line: "ibprov.timeout=soon": expected a number of seconds"#;
    said(&journal(&guest, "deadline"), text, "MESSAGE");
}

#[test]
fn a_signal_ends_the_wait_for_another_boot_and_leaves_that_one_alone() {
    let guest = boot("surroundings");
    guest.assert_success();
    assert!(guest.file("waiting").starts_with("StatusText=waiting for another ibprov boot"));
    assert_eq!(unit(&guest, "signal"), "ActiveState=active\nExecMainStatus=1\nResult=success\n");
    assert_eq!(guest.json("signal.json")["verdict"], "interrupted");
    assert_eq!(guest.file("holder"), "the first goes on\nuntil a signal ends it with 1\n");
}

/// A call by hand, or by the prolog of a job, is no evidence of the node.
#[test]
fn only_the_unit_leaves_a_report_of_wait_online() {
    let guest = boot("surroundings");
    guest.assert_success();
    let report = guest.json("online.json");
    assert_eq!(report["ports"][0]["expected"], "0000:4b:00.0", "{report:#}");
    assert_eq!(guest.json("online-later.json"), report);
    assert!(guest.file("by-hand").contains("ib7"), "{}", guest.file("by-hand"));
    let check = guest.json("check.json");
    let findings = check["findings"].as_array().expect("findings");
    let is_of_ib7 = |finding: &&serde_json::Value| finding.to_string().contains("ib7");
    assert_eq!(findings.iter().find(is_of_ib7), None, "{check:#}");
}

#[test]
fn who_is_not_root_is_told_so() {
    let guest = boot("surroundings");
    guest.assert_success();
    assert_eq!(guest.file("not-root.code"), "2\n");
    let told = guest.file("not-root.err");
    assert!(told.contains("must be run as root"), "{told}");
}

#[test]
fn a_bad_configuration_fails_the_unit_and_costs_neither_modules_nor_the_network() {
    let guest = boot("bad_configuration");
    guest.assert_success();
    assert_eq!(unit(&guest, "boot"), "ActiveState=failed\nExecMainStatus=3\nResult=exit-code\n");
    assert!(guest.file("boot.json").contains("\"configuration-invalid\""));
    assert_eq!(guest.file("networking"), "ActiveState=active\n");
    guest.journal.started("network.target");
    for place in ["/etc/ibprov/ibprov.toml:2:11", "/etc/ibprov/ibprov.toml:5:7"] {
        guest.journal.expect("ibprov.service", place);
    }
}
