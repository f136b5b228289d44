//! `ibprov check` on a live machine: each fault of the bed is told by its code,
//! and the machine without it is healthy.

use serde_json::Value;

use crate::bed::outcome::Outcome;
use crate::machine::boot;

/// The codes of the error findings of `NAME.json`, root causes first.
fn errors(guest: &Outcome, name: &str) -> Vec<String> {
    of_severity(&guest.json(&format!("{name}.json")), "error")
}

fn of_severity(report: &Value, severity: &str) -> Vec<String> {
    let findings = report["findings"].as_array().expect("findings");
    let of = findings.iter().filter(|f| f["severity"] == severity);
    of.map(|f| f["code"].as_str().expect("code").to_owned()).collect()
}

fn assert_first(guest: &Outcome, name: &str, code: &str) {
    let report = guest.json(&format!("{name}.json"));
    assert_eq!(errors(guest, name).first().map(String::as_str), Some(code), "{report:#}");
    assert_eq!(report["verdict"], "not-ready", "{report:#}");
    // 3 where the host itself is not ready, which only some of the faults make it.
    let code = |code: u8| guest.stdout().contains(&format!("{name}: {code}\n"));
    assert!(code(1) || code(3), "{}", guest.stdout());
}

#[test]
fn a_healthy_machine_is_healthy() {
    let guest = boot("check_live");
    guest.assert_success();
    let report = guest.json("healthy.json");
    assert_eq!(report["verdict"], "ready", "{report:#}");
    assert!(guest.stdout().contains("healthy: 0\n"), "{}", guest.stdout());
}

#[test]
fn each_fault_is_told_by_its_code() {
    let guest = boot("check_live");
    guest.assert_success();
    for (name, code) in [
        ("consumer", "ordering-missing"),
        ("no-sm", "no-subnet-manager"),
        ("next-boot", "ordering-cycle"),
    ] {
        assert_first(&guest, name, code);
    }
    // ib0 is asked for, and is not there.
    assert_first(&guest, "denied", "module-denied");
    // As grave as status says, which knows no plan of them; their link state is down too.
    for (name, code) in [
        ("guid-zero", "vf-guid-zero"),
        ("guid-zero", "vf-policy-down"),
        ("policy-down", "vf-policy-down"),
        ("vf-probe", "vf-probe-failed"),
    ] {
        let report = guest.json(&format!("{name}.json"));
        assert!(of_severity(&report, "warning").contains(&code.to_owned()), "{name}: {report:#}");
        assert_eq!(report["verdict"], "exceptions", "{name}: {report:#}");
    }
    // The VFs of the step before are still in this boot's log.
    let codes = errors(&guest, "pf-probe");
    for code in ["driver-regression", "port-not-ready"] {
        assert!(codes.contains(&code.to_owned()), "{codes:?}");
    }
}

/// The cable out and in, the subnet manager away and back: every verb has the same account.
#[test]
fn each_verb_says_the_same_while_cable_and_subnet_manager_go_and_come() {
    let guest = boot("check_live");
    guest.assert_success();
    for (name, first) in [
        ("cable-out", "link-down-cable"),
        ("cable-in", "healthy"),
        ("no-sm", "no-subnet-manager"),
        ("sm-back", "healthy"),
    ] {
        let (verdict, exit, lacks) = match first {
            "healthy" => ("ready", 0, &[][..]),
            _ => ("not-ready", 3, &["port-not-active"][..]),
        };
        let status = guest.json(&format!("{name}.status.json"));
        assert_eq!(status["verdict"], verdict, "{name}: {status:#}");
        assert_eq!(of_severity(&status, "error"), lacks, "{name}");
        let metric = format!("ibprov_node_verdict{{verdict=\"{verdict}\"}} 1\n");
        assert!(guest.file(&format!("{name}.prom")).contains(&metric), "{name}");
        let check = guest.json(&format!("{name}.json"));
        assert_eq!(check["verdict"], verdict, "{name}: {check:#}");
        assert_eq!(check["findings"][0]["code"], first, "{name}: {check:#}");
        let told = errors(&guest, name);
        assert!(lacks.iter().all(|lack| told.iter().any(|code| code == lack)), "{name}: {told:?}");
        for verb in ["", " status", " wait-online"] {
            let line = format!("{name}{verb}: {exit}\n");
            assert!(guest.stdout().contains(&line), "{line}{}", guest.stdout());
        }
    }
}

/// Two of the archives are without names and addresses.
#[test]
fn an_archive_of_the_machine_tells_what_the_machine_tells() {
    let guest = boot("check_live");
    guest.assert_success();
    let told = |name: &str| {
        let report = guest.json(&format!("{name}.json"));
        let findings = report["findings"].as_array().expect("findings").iter();
        let codes: Vec<String> =
            findings.map(|f| format!("{}: {}", f["severity"], f["code"])).collect();
        (report["verdict"].to_string(), codes)
    };
    for name in ["consumer", "no-sm", "guid-zero"] {
        assert_eq!(told(&format!("{name}.mail")), told(name), "{name}");
    }
}

#[test]
fn the_missing_edge_comes_with_the_command_that_adds_it() {
    let report = boot("check_live").json("consumer.json");
    let advice = report["findings"][0]["advice"].to_string();
    assert!(advice.contains("ibprov consumers --install"), "{report:#}");
}

#[test]
fn a_disabled_unit_is_a_warning_while_the_ports_are_up() {
    let report = boot("check_live").json("disabled.json");
    assert_eq!(of_severity(&report, "error"), [""; 0], "{report:#}");
    let warnings = of_severity(&report, "warning");
    assert!(warnings.contains(&"openibd-disabled".to_owned()), "{report:#}");
}

#[test]
fn the_next_boot_is_foretold_live_and_from_the_tree() {
    let guest = boot("check_live");
    for name in ["next-boot", "next-boot-of-tree"] {
        let codes = errors(&guest, name);
        for code in ["ordering-cycle", "start-wait-deadlock"] {
            assert!(codes.contains(&code.to_owned()), "{name}: {codes:?}");
        }
    }
}

#[test]
#[ignore = "tree check:: has the log of that failure; check_live is diagnosed live"]
fn the_founding_failure_is_told_live_and_drawn() {
    let guest = boot("check_late");
    guest.assert_success();
    assert!(guest.stdout().contains("late: 1\n"), "its port is ready: {}", guest.stdout());
    let report = guest.json("late.json");
    let codes = of_severity(&report, "error");
    assert_eq!(codes.first().map(String::as_str), Some("openibd-disabled"), "{report:#}");
    assert!(codes.contains(&"netdev-late".to_owned()), "{report:#}");
    let svg = guest.file("late.svg");
    assert!(svg.contains("ib0 appeared ") && svg.contains("after networking.service"), "{svg}");
}
/// What `check` says of a bring-up with one fault: the fault, the verdict, the code of the
/// first finding and the exit code.
type Told = (&'static str, &'static str, &'static str, u8);

const BRINGUPS: &[Told] = &[
    ("plain", "ready", "healthy", 0),
    ("late_sm", "ready", "healthy", 0),
    ("cable", "not-ready", "link-down-cable", 3),
    ("missing", "not-ready", "module-missing-for-kernel", 3),
    ("bad_configuration", "not-ready", "configuration-invalid", 3),
];

const OTHER_BRINGUPS: &[Told] = &[
    ("enomem", "not-ready", "driver-regression", 3),
    ("hung", "not-ready", "firmware-fatal", 3),
    ("lnet", "not-ready", "ordering-missing", 1),
    ("late_card", "ready", "healthy", 0),
    ("unused_port", "ready", "healthy", 0),
    ("ethernet_port", "ready", "healthy", 0),
    ("no_sm", "not-ready", "no-subnet-manager", 3),
    // ib0 is asked for.
    ("blacklist", "not-ready", "openibd-disabled", 3),
    ("driver_denied", "not-ready", "module-denied", 3),
    ("renamed", "not-ready", "netdev-renamed", 1),
    ("masked", "not-ready", "openibd-disabled", 3),
    // That the module comes late is what the disabled agent leaves.
    ("late_without", "not-ready", "openibd-disabled", 1),
    ("eio", "not-ready", "driver-regression", 3),
    ("slurmd", "not-ready", "ordering-missing", 1),
    ("beegfs", "not-ready", "ordering-missing", 1),
    ("bind", "not-ready", "ordering-missing", 1),
    ("mount_netdev", "not-ready", "mount-before-ipoib", 1),
    ("cycle", "not-ready", "ordering-cycle", 1),
    ("full_run", "exceptions", "run-full", 1),
    ("openibd_masked", "not-ready", "openibd-disabled", 3),
    ("nvswitch_port", "ready", "healthy", 0),
    // ib0 is asked for.
    ("install_line", "not-ready", "module-denied", 3),
    ("signature", "not-ready", "module-signature-refused", 3),
    ("other_kernel", "not-ready", "module-symbol-mismatch", 3),
    ("disabled", "not-ready", "openibd-disabled", 3),
    ("mount", "not-ready", "mount-before-ipoib", 1),
    ("openibd_fails", "not-ready", "openibd-failed", 3),
];

const PLANS: &[Told] = &[
    ("planned", "ready", "healthy", 0),
    ("unused_vfs", "ready", "healthy", 0),
    ("vf_enomem", "not-ready", "vf-probe-failed", 3),
    ("vf_eio", "not-ready", "vf-probe-failed", 3),
    ("guid_dropped", "not-ready", "vf-setting-dropped", 3),
    ("guid_refused", "not-ready", "vf-setting-refused", 3),
    ("guid_stale", "not-ready", "vf-not-as-planned", 3),
    ("guid_zero", "exceptions", "vf-guid-zero", 1),
    ("guid_twice", "not-ready", "configuration-invalid", 3),
    ("policy_down", "ready", "healthy", 0),
    ("policy_dropped", "not-ready", "vf-setting-dropped", 3),
    ("totalvfs", "not-ready", "sriov-not-enabled-fw", 3),
    ("too_many", "not-ready", "too-many-vfs", 3),
    ("in_use", "exceptions", "vf-deferred", 1),
    ("guest_early", "not-ready", "vm-before-vf", 1),
    ("guest_autostart", "exceptions", "autostart-guest-on-vf", 1),
];

/// Every bring-up of `scenario` is told as `told` has it.
fn assert_told(scenario: &str, told: &[Told]) {
    let guest = boot(scenario);
    guest.assert_success();
    let text = guest.stdout();
    let mut wrong = Vec::new();
    for &(fault, verdict, code, exit) in told {
        let report = guest.json(&format!("{fault}.json"));
        let first = report["findings"][0]["code"].as_str().unwrap_or("no finding");
        let was = (report["verdict"].as_str().expect("verdict"), first);
        if was != (verdict, code) || !text.contains(&format!("{fault}: {exit}\n")) {
            wrong.push(format!("{fault}: {was:?} instead of {verdict} {code} {exit}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\n{text}");
    assert_eq!(text.lines().count(), told.len(), "{text}");
}

#[test]
#[ignore = "each takes a bring-up; check_live and modules have these faults"]
fn each_fault_of_a_bring_up_is_told() {
    assert_told("check_bringups", BRINGUPS);
}

#[test]
#[ignore = "so many bring-ups take minutes"]
fn each_other_fault_of_a_bring_up_is_told() {
    assert_told("check_bringups_rest", OTHER_BRINGUPS);
}

#[test]
#[ignore = "sixteen bring-ups take minutes"]
fn each_fault_of_a_plan_is_told() {
    assert_told("check_plans", PLANS);
}
