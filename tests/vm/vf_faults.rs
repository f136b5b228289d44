//! What goes wrong with VFs, and is put right or named; on the distribution's own mlx5
//! drivers. With what firmware fails is a guess; what the drivers make of it is not.

use serde_json::Value;

use crate::bed::outcome::Outcome;
use crate::card::assert_sound;
use crate::machine::boot;
use crate::vf_plan::planned;

pub(crate) fn assert_exit(guest: &Outcome, name: &str, code: u8) {
    let want = format!("{name}: {code}\n");
    assert!(guest.stdout().contains(&want), "want {want:?} in:\n{}", guest.stdout());
}

fn assert_planned(guest: &Outcome, name: &str, first: &str) {
    for (label, pf) in [("one", 0), ("two", 1)] {
        let facts = guest.file(&format!("{name}.{label}"));
        assert_eq!(facts, planned(first, pf, 4), "{name} {label}");
    }
}

pub(crate) fn wrong(report: &Value, pf: usize) -> Vec<&Value> {
    let vfs = report["pfs"][pf]["vfs"].as_array().expect("VFs");
    vfs.iter().filter(|v| v["right"] == false).collect()
}

pub(crate) fn cause(vf: &Value) -> &str {
    vf["reason"].as_str().expect("reason")
}

#[test]
fn a_pf_later_than_the_deadline_is_put_right_without_a_hand() {
    let guest = boot("vf_faults");
    let boot = guest.json("boot-then.json");
    let late = boot["pfs"].as_array().expect("PFs").iter().find(|p| p["pf"] == "0001:03:00.0");
    assert!(late.is_none_or(|l| l["exit_code"] != 0), "it was not late: {boot:#}");
    assert_eq!(boot["exit_code"], 3);
    assert!(!guest.stdout().contains("nobody cared for 0001:03"), "{}", guest.stdout());
    assert_eq!(guest.file("late.facts"), planned("0200:0070", 2, 2));
    let unit = "ibprov-pf@sys-devices-pci0001:03-0001:03:00.0.service";
    guest.journal.expect(unit, "PF 0001:03:00.0: 2 of 2 VFs as planned");
}

#[test]
fn a_pf_that_is_bound_again_or_plugged_in_is_put_right_without_a_hand() {
    let guest = boot("vf_faults");
    guest.assert_success();
    assert_sound(&guest);
    assert!(!guest.stdout().contains("nobody cared"), "{}", guest.stdout());
    assert_planned(&guest, "rebound", "0200:0070");
    assert_eq!(guest.file("plugged.facts"), planned("0200:0070", 2, 2));
}

#[test]
fn a_vf_whose_probe_fails_is_named_and_the_others_are_right() {
    let guest = boot("vf_faults");
    assert_exit(&guest, "one-fails", 3);
    let report = guest.json("one-fails.json");
    let wrong = wrong(&report, 0);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert_eq!((&wrong[0]["vf"], &wrong[0]["pci"]), (&2.into(), &"0001:01:00.3".into()));
    let cause = cause(wrong[0]);
    assert!(cause.contains("EIO: I/O error"), "{cause}");
    assert!(cause.contains("failed with error"), "the kernel's reason: {cause}");
    let facts = guest.file("one-fails.facts");
    for (have, want) in facts.lines().zip(planned("0200:0070", 0, 4).lines()) {
        assert!(have == want || have == "2 - (null) - - -", "{have} instead of {want}");
    }
    assert_exit(&guest, "repaired", 0);
    assert_eq!(guest.file("repaired.facts"), planned("0200:0070", 0, 4));
}

#[test]
fn rdma_numbers_out_of_order_do_not_matter() {
    let guest = boot("vf_faults");
    let numbers = guest.file("numbers");
    let rdma = |l: &str| l.split_once("mlx5_").and_then(|(_, n)| n.parse::<u32>().ok());
    let in_order: Vec<u32> = numbers.lines().filter_map(rdma).collect();
    assert_eq!(in_order.len(), 3, "{numbers}");
    assert!(!in_order.is_sorted(), "they are in order, which proves nothing: {numbers}");
    let report = guest.json("one-fails.json");
    let vfs = report["pfs"][0]["vfs"].as_array().expect("VFs");
    let told = |vf: &Value| format!("{} {}\n", vf["vf"], vf["rdma"].as_str().unwrap_or_default());
    assert_eq!(vfs.iter().map(told).collect::<String>(), numbers);
    let right: Vec<bool> = vfs.iter().map(|vf| vf["right"] == true).collect();
    assert_eq!(right, [true, true, false, true], "{report:#}");
    let facts = guest.file("one-fails.facts");
    assert_eq!(facts.lines().next(), planned("0200:0070", 0, 4).lines().next());
}

#[test]
fn a_guid_that_the_firmware_drops_is_detected() {
    let guest = boot("vf_faults");
    assert_exit(&guest, "dropped", 3);
    let report = guest.json("dropped.json");
    for pf in 0..2 {
        let wrong = wrong(&report, pf);
        assert_eq!(wrong.len(), 4, "{report:#}");
        // The PF's driver says what it was told: only the VF shows it.
        let said = cause(wrong[1]);
        let want = format!(
            "the node GUID of the VF is 0200:0070:0{pf}00:0001 instead of 0200:0071:0{pf}00:0001"
        );
        assert!(said.contains(&want), "{said}");
    }
    assert_exit(&guest, "set-now", 0);
    assert_planned(&guest, "set-now", "0200:0071");
}

#[test]
fn a_guid_that_the_firmware_refuses_is_an_error_with_its_number() {
    let guest = boot("vf_faults");
    assert_exit(&guest, "refused", 3);
    let report = guest.json("refused.json");
    let wrong = wrong(&report, 0);
    assert_eq!(wrong.len(), 4, "{report:#}");
    for vf in wrong {
        // Status 9, bad resource state, is EINVAL by the driver.
        assert!(cause(vf).contains("EINVAL: Invalid argument"), "{vf:#}");
    }
}

/// One VF of this PF went on with the GUIDs of its last probe.
pub(crate) fn assert_stale(guest: &Outcome, pf: usize) {
    assert_exit(guest, "stale", 3);
    let report = guest.json("stale.json");
    let wrong = wrong(&report, pf);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert_eq!(wrong[0]["vf"], 2);
    let cause = cause(wrong[0]);
    assert!(cause.contains("although the VF was bound after its GUIDs were set"), "{cause}");
}

#[test]
fn a_vf_that_goes_on_with_its_old_guid_is_detected() {
    let guest = boot("vf_faults");
    for pf in 0..2 {
        assert_stale(&guest, pf);
    }
}

#[test]
fn a_policy_that_the_firmware_drops_or_refuses_is_detected() {
    let guest = boot("vf_faults");
    assert_exit(&guest, "policy", 3);
    let report = guest.json("policy.json");
    for pf in 0..2 {
        let wrong = wrong(&report, pf);
        assert_eq!(wrong.len(), 4, "{report:#}");
        assert!(cause(wrong[0]).contains("the link state is"), "{:#}", wrong[0]);
    }
    assert_exit(&guest, "policy-now", 0);
    assert_planned(&guest, "policy-now", "0200:0072");
}

/// `sriov_numvfs` succeeds all the same.
#[test]
fn a_vf_for_which_the_firmware_has_no_room_is_named() {
    let guest = boot("vf_faults");
    assert_exit(&guest, "no-room", 3);
    let report = guest.json("no-room.json");
    let wrong = wrong(&report, 0);
    assert_eq!(wrong.len(), 1, "{report:#}");
    assert_eq!(wrong[0]["vf"], 0);
    // Status 15, no resources, is EAGAIN by the driver.
    assert!(cause(wrong[0]).contains("EAGAIN: Try again"), "{:#}", wrong[0]);
}

#[track_caller]
fn assert_line(guest: &Outcome, line: &str) {
    let text = guest.stdout();
    assert!(text.lines().any(|l| l == line), "no line {line:?} in:\n{text}");
}

/// Eight of its nine probes hang then, which is all that a child works on at a time.
#[test]
fn what_a_killed_apply_has_changed_is_put_back_after_its_probes_without_another_run() {
    let guest = boot("vf_faults");
    // The unit's own way to stop has ended, and nothing can be put back yet.
    assert_line(&guest, "stopped: autoprobe 0 record kept lock held");
    assert_line(&guest, "killed: autoprobe 1 record none lock free");
    assert_eq!(guest.file("killed.overrides").trim(), "9 (null)");
    let unit = "killed@sys-devices-pci0001:01-0001:01:00.0.service";
    for step in ["restore sriov_drivers_autoprobe to 1", "clear driver_override of 0001:01:00.1"] {
        guest.journal.expect(unit, &format!("done after the end of the run: {step}"));
    }
    // The others had their binds put back.
    let restored = |unit| {
        let entries = guest.journal.unit(unit);
        entries.filter(|e| e.message.contains("done after the end of the run: ")).count()
    };
    assert_eq!(restored(unit), 2);
}

#[test]
fn an_undo_that_finds_a_child_at_work_names_it_and_else_puts_back() {
    let guest = boot("vf_faults");
    assert_exit(&guest, "undo", 1);
    let said = guest.file("undo.log");
    assert!(said.contains(": nothing is restored yet (process "), "{said}");
    assert!(!said.contains("signal"), "{said}");
    let report = guest.json("undo.json");
    let pf = &report["pfs"][0];
    assert_eq!(pf["verdict"], "deferred", "{pf:#}");
    let busy = format!("process {} holds ", guest.file("child").trim());
    assert!(pf["reason"].as_str().is_some_and(|why| why.starts_with(&busy)), "{pf:#}");
    let unit = "killed@sys-devices-pci0001:01-0001:01:00.0.service";
    guest.journal.expect(unit, "nothing is restored yet (process ");
    assert_exit(&guest, "undone", 0);
    assert_line(&guest, "undone: autoprobe 1 record none lock free");
    let said = guest.file("undone.log");
    assert!(said.contains(": 1 of 1 changes of an interrupted run restored after "), "{said}");
}

#[test]
fn an_apply_that_is_stopped_while_eight_probes_hang_restores_automatic_probing() {
    let guest = boot("vf_faults");
    assert_exit(&guest, "signal", 1);
    assert_line(&guest, "signal: autoprobe 1 record kept lock held");
    let report = guest.json("signal.json");
    let steps = report["pfs"][0]["steps"].as_array().expect("steps");
    let back = steps.iter().find(|step| step["step"] == "restore-autoprobe");
    assert_eq!(back.expect("a step")["reason"], Value::Null, "{report:#}");
    let said = guest.file("signal.log");
    assert!(
        said.contains(", when it has finished, or the next `ibprov apply` tries again"),
        "{said}"
    );
    assert_line(&guest, "signal-through: autoprobe 1 record none lock free");
    assert_eq!(guest.file("signal-through.overrides").trim(), "9 (null)");
}

/// The kernel is still creating them when the run ends.
#[test]
fn vfs_that_come_after_the_end_of_an_apply_are_not_probed() {
    let guest = boot("vf_faults");
    assert_exit(&guest, "counting", 1);
    assert_line(&guest, "counting: autoprobe 0 record kept lock held");
    assert_line(&guest, "counted: autoprobe 1 record none lock free");
    assert_line(&guest, "probed: 0 of 9");
}

#[test]
fn a_pf_without_sr_iov_is_a_clear_error() {
    let guest = boot("vf_faults");
    assert_exit(&guest, "no-sriov", 3);
    let report = guest.json("no-sriov.json");
    let error = &report["unresolved"][0]["findings"][0];
    assert_eq!(error["code"], "sriov-not-enabled-fw", "{error:#}");
    let remedy = error["advice"][0]["run"].as_str().expect("a remedy");
    assert!(remedy.contains("SRIOV_EN=1"), "{error:#}");
}
