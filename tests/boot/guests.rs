//! `ibprov guests` with real libvirt and real QEMU domains.

use serde_json::Value;

use crate::bed::journal::assert_in_order;
use crate::bed::outcome::Outcome;
use crate::nspawn::boot;

/// What a report says of one guest.
fn guest(outcome: &Outcome, report: &str, name: &str) -> Value {
    let report = outcome.json(report);
    let guests = report["guests"].as_array().expect("guests");
    guests
        .iter()
        .find(|g| g["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {report:#}"))
        .clone()
}

fn assert_failed(outcome: &Outcome, report: &str, name: &str, why: &str) {
    let guest = guest(outcome, report, name);
    assert_eq!(guest["phase"], "failed", "{guest:#}");
    let said = guest["reason"].as_str().expect("reason");
    assert!(said.contains(why), "{name}: {said}");
}

/// When an event of the unit was told of a guest, in the boot.
fn told(outcome: &Outcome, name: &str, text: &str) -> std::time::Duration {
    let entry = outcome
        .journal
        .unit("ibprov-guests.service")
        .find(|e| e.field("IBPROV_GUEST") == name && e.message.contains(text));
    entry.unwrap_or_else(|| panic!("nothing of {name} with {text:?}")).at
}

#[test]
fn every_run_ends_with_its_code() {
    let outcome = boot("guests");
    let want = "status: 3\ncrash: 0\nagent: 3\napply: 3\nplain: started\nhung: 1\nsilent: 1\naway: 3\nnone: 3\ndriver: 3\nempty: 0\n";
    assert_eq!(outcome.stdout(), want, "{}", outcome.file("stderr"));
}

#[test]
fn guests_whose_vfs_are_right_are_up_in_their_order() {
    let outcome = boot("guests");
    assert_eq!(outcome.file("boot.domains"), "--help\nfirst\nlast\nvm; reboot\n");
    assert_in_order(&[
        ("first is up", told(&outcome, "first", "is up")),
        ("its follower starts", told(&outcome, "vm; reboot", "is being started")),
        ("and is up", told(&outcome, "vm; reboot", "is up")),
        ("the last starts", told(&outcome, "last", "is being started")),
    ]);
    assert_in_order(&[
        ("--help is up", told(&outcome, "--help", "is up")),
        ("its follower starts", told(&outcome, "vm; reboot", "is being started")),
    ]);
}

#[test]
fn no_more_start_at_once_than_are_allowed() {
    assert_eq!(boot("guests").file("at-once"), "2\n");
}

#[test]
fn a_guest_without_its_vf_holds_up_nobody() {
    let outcome = boot("guests");
    let unit = outcome.file("boot.unit");
    assert!(unit.contains("ActiveState=active\n") && unit.contains("SubState=running"), "{unit}");
    assert!(
        unit.contains(
            "domain late waits: VF 0000:4b:00.0/1 (0000:4b:00.2): the link state is set to down"
        ),
        "{unit}"
    );
    let late = guest(&outcome, "boot.json", "late");
    assert_eq!((&late["phase"], &late["vfs"][0]["reached"]), (&"idle".into(), &"created".into()));
    outcome.journal.started("multi-user.target");
}

#[test]
fn killed_it_is_started_again_and_goes_on_waiting() {
    let unit = boot("guests").file("killed.unit");
    assert!(unit.contains("ActiveState=active\n") && unit.contains("SubState=running"), "{unit}");
    assert!(unit.contains("domain late waits"), "{unit}");
}

#[test]
fn it_starts_when_its_vf_becomes_right() {
    let outcome = boot("guests");
    let times = outcome.file("late.times");
    let (before, after) = times.trim().split_once(' ').expect("two times");
    let seconds = after.parse::<f64>().expect("time") - before.parse::<f64>().expect("time");
    // Where sites slept for 10 s.
    assert!(seconds < 9.0, "{seconds} s");
    let late = guest(&outcome, "end.json", "late");
    assert_eq!((&late["phase"], &late["vfs"][0]["reached"]), (&"up".into(), &"handed-over".into()));
    // With nothing left to wait for it ends, failed for those that are.
    let unit = outcome.file("end.unit");
    assert!(unit.contains("ActiveState=failed\n") && unit.contains("ExecMainStatus=3"), "{unit}");
}

#[test]
fn what_cannot_be_started_is_told_and_why() {
    let outcome = boot("guests");
    assert_failed(&outcome, "boot.json", "reported", "the link state is set to down");
    assert_failed(&outcome, "boot.json", "ghost", "libvirt has no domain of this name");
    assert_failed(&outcome, "boot.json", "broken", "/nowhere");
    assert_failed(&outcome, "boot.json", "fails.service", "exit-code");
    assert_failed(&outcome, "boot.json", "no-such.service", "not-found");
}

#[test]
fn a_unit_that_is_ordered_after_us_is_not_waited_for() {
    let outcome = boot("guests");
    let entry = outcome
        .journal
        .expect("ibprov-guests.service", "was started, and ibprov does not wait until it is up");
    let chain = "ibprov-guests.service < hop1.service < hop2.target < deep.service";
    assert!(entry.message.contains(chain), "{}", entry.message);
    assert_eq!(guest(&outcome, "end.json", "deep.service")["phase"], "up");
    assert_eq!(outcome.file("boot.units"), "ActiveState=active\n\nActiveState=active\n");
    let journal = &outcome.journal;
    assert_in_order(&[
        ("ibprov-guests.service", journal.started("ibprov-guests.service")),
        ("deep.service", journal.started("deep.service")),
    ]);
}

#[test]
fn what_is_up_is_left_alone() {
    let outcome = boot("guests");
    for name in ["first", "vm; reboot", "--help", "vm@1.service"] {
        let guest = guest(&outcome, "again.json", name);
        assert_eq!((&guest["phase"], &guest["already"]), (&"up".into(), &true.into()), "{name}");
    }
    let after = outcome.file("qemu.after");
    for pid in outcome.file("qemu.before").lines() {
        assert!(after.lines().any(|other| other == pid), "QEMU {pid} is gone: {after}");
    }
}

#[test]
fn a_libvirt_that_dies_in_the_middle_is_asked_again() {
    let outcome = boot("guests");
    assert_eq!(guest(&outcome, "crash.json", "crash")["phase"], "up");
}

#[test]
fn without_libvirt_it_says_so_and_units_start() {
    let outcome = boot("guests");
    assert_failed(&outcome, "away.json", "first", "does not answer");
    assert_eq!(guest(&outcome, "away.json", "vm@2.service")["phase"], "up");
    let said = outcome.file("none.err");
    assert!(said.contains("virsh is not installed"), "{said}");
}

#[test]
fn libvirts_own_test_driver_will_do() {
    let outcome = boot("guests");
    let test = guest(&outcome, "driver.json", "test");
    assert_eq!((&test["phase"], &test["already"]), (&"up".into(), &true.into()));
    assert_failed(&outcome, "driver.json", "ghost", "libvirt has no domain of this name");
}

#[test]
fn status_and_dry_run_show_all_and_start_nothing() {
    let outcome = boot("guests");
    let status = outcome.file("status");
    for line in [
        "6 of 12 guests up",
        "VF 0000:4b:00.0/0 (0000:4b:00.1): handed-over: right",
        "domain late: waits: VF 0000:4b:00.0/1 (0000:4b:00.2): the link state is set to down",
        "VF 0000:4b:00.0/1 (0000:4b:00.2): created: the link state is set to down",
        "domain broken: FAILED: virsh start:",
    ] {
        assert!(status.contains(line), "{line:?} is not in\n{status}");
    }
    assert_eq!(guest(&outcome, "status.json", "first")["phase"], "up");
    let dry_run = outcome.file("dry-run");
    assert!(
        dry_run.contains("would be started, in this order:\n  1. domain broken\n"),
        "{dry_run}"
    );
    assert!(!dry_run.contains("domain late\n"), "{dry_run}");
}

#[test]
fn a_domain_that_libvirt_would_start_on_a_vf_is_warned_of() {
    let outcome = boot("guests");
    let entry = outcome.journal.expect("ibprov-guests.service", "domain eager has autostart on");
    assert!(entry.message.contains("0000:4b:00.2"), "{}", entry.message);
}

#[test]
fn a_guest_may_count_as_up_only_when_its_agent_answers() {
    let outcome = boot("guests");
    let answers = guest(&outcome, "agent.json", "answers");
    assert_eq!((&answers["phase"], &answers["already"]), (&"up".into(), &false.into()));
    // It has to boot first, which takes longer than libvirt's start of it.
    let mute = guest(&outcome, "agent.json", "mute");
    let why = mute["reason"].as_str().expect("reason");
    assert_eq!(mute["phase"], "failed", "{mute:#}");
    assert!(why.starts_with("not up after 6 s: the guest agent does not answer: "), "{why}");
    assert_failed(&outcome, "agent.json", "deaf", "guest agent is not configured");
}

#[test]
fn the_hook_lets_domains_start_only_on_vfs_that_are_right() {
    let outcome = boot("guests");
    let refused = |name: &str, why: &str| {
        let said = outcome.file(&format!("start.{name}"));
        assert!(said.contains("Hook script") && said.contains(why), "{name}: {said}");
    };
    refused("unknown", "ibprov has not applied a plan to its PF 0000:4b:00.0");
    refused("eager", "VF 0000:4b:00.2 is not as planned");
    let report = outcome.json("pf.json");
    let right: Vec<_> =
        report["vfs"].as_array().expect("VFs").iter().map(|v| &v["right"]).collect();
    assert_eq!(right, [true, false], "{report:#}");
    // The hook has no objection; libvirt itself has, the card being files.
    let handed = outcome.file("start.handed");
    assert!(!handed.is_empty() && !handed.contains("Hook script"), "{handed}");
}

#[test]
fn plan_is_not_held_by_a_pf_that_hangs() {
    let outcome = boot("guests");
    let said = outcome.file("hung");
    assert!(
        said.contains(
            "the settings of the VFs at the PF cannot be read: the PF did not answer within 5 s"
        ),
        "{said}"
    );
    let times = outcome.file("hung.times");
    let (before, after) = times.trim().split_once(' ').expect("two times");
    let seconds = after.parse::<f64>().expect("time") - before.parse::<f64>().expect("time");
    assert!((4.5..9.0).contains(&seconds), "{seconds} s");
}

#[test]
fn a_pf_that_hangs_keeps_one_child_however_long_a_guest_waits() {
    let outcome = boot("guests");
    let waits = guest(&outcome, "silent.json", "vm@3.service");
    assert_eq!(waits["phase"], "idle", "{waits:#}");
    let figures = outcome.file("silent");
    let (children, reads) = figures.trim().split_once(' ').expect("two numbers");
    println!("{children} children, {reads} reads in 12 s");
    assert_eq!(children, "1");
    // With an event every 100 ms there are ten looks a second.
    let reads: u32 = reads.parse().expect("a number");
    assert!(reads < 20_000, "{reads} reads in 12 s");
    let report = outcome.file("silent.json");
    let said = "PF 0000:4b:00.0 did not report the settings of its VFs within 5 s";
    assert!(report.contains(said), "{report}");
}
