//! `ibprov check` on systemd's graph: what it foretells is what systemd did, and
//! the reader of unit files sees the graph that systemd has.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use ibprov::graph::consumers::{self, JudgedUnit, Proof};
use ibprov::graph::{Graph, Load, cycles, deadlock, files, show};
use ibprov::host::Root;
use ibprov::stacks;
use serde_json::Value;

use crate::bed::outcome::Outcome;
use crate::bed::reports::assert_valid;
use crate::bed::stage;
use crate::nspawn::boot;

fn codes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().map(|f| f["code"].as_str().expect("code")).collect()
}

fn finding<'a>(report: &'a Value, code: &str) -> &'a Value {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().find(|f| f["code"] == code).unwrap_or_else(|| panic!("no {code}: {report:#}"))
}

/// The graph as systemd has it, and as its files make it.
fn graphs(guest: &Outcome) -> (Graph, Graph) {
    let live = show::graph(&guest.file("shown"), "default.target");
    let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join("boot-units");
    let _ = std::fs::remove_dir_all(&tree);
    std::fs::create_dir_all(&tree).expect("folder");
    let archive = guest.out.join("units.tar");
    let unpacked = Command::new("tar").arg("-C").arg(&tree).arg("-xf").arg(archive).status();
    assert!(unpacked.expect("tar").success());
    // On Debian /lib is a link to usr/lib; the archive has the latter.
    std::os::unix::fs::symlink("usr/lib", tree.join("lib")).expect("link");
    let files = files::graph(&Root::copy_at(&tree).expect("root"));
    (live, files)
}

#[test]
fn a_whole_graph_has_neither_cycle_nor_deadlock() {
    let guest = boot("check_order");
    guest.assert_success();
    for name in ["live.json", "tree.json"] {
        let report = guest.json(name);
        let found = codes(&report);
        assert!(!found.contains(&"ordering-cycle"), "{report:#}");
        assert!(!found.contains(&"start-wait-deadlock"), "{report:#}");
    }
    let (live, files) = graphs(&guest);
    for graph in [&live, &files] {
        assert_eq!(cycles::cycles(graph), []);
        assert_eq!(deadlock::deadlocks(graph, stacks::waited_for), []);
    }
}

#[test]
fn the_files_make_the_transaction_that_systemd_has() {
    let (live, files) = graphs(&boot("check_order"));
    let services = |graph: &Graph| -> BTreeSet<String> {
        let all = graph.transaction();
        let of = |n: &&&str| n.ends_with(".service") || n.ends_with(".target");
        all.iter().filter(of).map(|n| (*n).to_owned()).collect()
    };
    let (live_units, file_units) = (services(&live), services(&files));
    let missing: Vec<&String> = live_units.difference(&file_units).collect();
    // What systemd itself makes is not in files.
    let made = |n: &&&String| live.get(n).is_some_and(|u| u.fragment.is_empty());
    let missing: Vec<_> = missing.iter().filter(|n| !made(n)).collect();
    assert_eq!(missing, [&&""; 0], "systemd has these, the files give none");
    let extra: Vec<_> = file_units.difference(&live_units).collect();
    let extra: Vec<_> =
        extra.iter().filter(|n| live.get(n).is_some_and(|u| u.load == Load::Loaded)).collect();
    assert_eq!(extra, [&&""; 0], "the files give these, systemd does not start them");
}

#[test]
fn the_files_prove_what_systemd_proves() {
    let (live, files) = graphs(&boot("check_order"));
    let proved = |graph: &Graph| -> Vec<(String, bool)> {
        let ordered = |j: &JudgedUnit| matches!(j.proof, Proof::Ordered(_));
        consumers::judge(graph, stacks::network_role, |_| false)
            .iter()
            .map(|j| (j.unit.clone(), ordered(j)))
            .collect()
    };
    let by_systemd = proved(&live);
    assert_eq!(by_systemd, proved(&files));
    assert!(by_systemd.len() > 5, "{by_systemd:?}");
    // libvirtd, wait-online and network services: all come after ibprov.
    let unproved: Vec<_> = by_systemd.iter().filter(|(_, ordered)| !ordered).collect();
    assert!(unproved.is_empty(), "{unproved:?}");
}

#[test]
fn the_orders_of_the_files_are_those_of_systemd() {
    let (live, files) = graphs(&boot("check_order"));
    let among = live.transaction();
    let mut wrong = Vec::new();
    for name in files.transaction() {
        let (Some(by_file), Some(by_systemd)) = (files.get(name), live.get(name)) else { continue };
        if !name.ends_with(".service") && !name.ends_with(".target") {
            continue;
        }
        let shared = |orders: &BTreeSet<String>| -> BTreeSet<String> {
            let known = |n: &&String| {
                among.contains(n.as_str()) && (n.ends_with(".service") || n.ends_with(".target"))
            };
            orders.iter().filter(known).cloned().collect()
        };
        let (a, b) = (shared(&by_file.after), shared(&by_systemd.after));
        // What StateDirectory= and its like imply: an order on local file systems.
        let implied = |n: &&String| *n == "systemd-remount-fs.service";
        let lacking: Vec<_> = b.difference(&a).filter(|n| !implied(n)).collect();
        let invented: Vec<_> = a.difference(&b).collect();
        if !lacking.is_empty() || !invented.is_empty() {
            wrong.push(format!("{name}: lacks {lacking:?}, invents {invented:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn the_cycle_that_systemd_broke_is_told_with_its_victim() {
    let guest = boot("check_faults");
    guest.assert_success();
    assert!(guest.stdout().contains("faults: 1\n"), "{}", guest.stdout());
    let report = guest.json("faults.json");
    let cycle = finding(&report, "ordering-cycle");
    assert_eq!(cycle["severity"], "error", "{cycle:#}");
    let chain = cycle["chain"].to_string();
    assert!(chain.contains("storage-net.service"), "{chain}");
    // What systemd says that it dropped is among those that were named.
    let said = guest.file("graph");
    let dropped: Vec<&str> = said
        .lines()
        .filter_map(|l| l.split_once("Job ")?.1.split_once("/start deleted to break"))
        .map(|(unit, _)| unit)
        .collect();
    assert!(!dropped.is_empty(), "{said}");
    for unit in dropped {
        assert!(chain.contains(unit), "{unit} is not in {chain}");
    }
}

#[test]
fn the_deadlock_that_a_time_limit_ended_is_told() {
    let guest = boot("check_faults");
    let report = guest.json("faults.json");
    let deadlock = finding(&report, "start-wait-deadlock");
    assert_eq!(deadlock["severity"], "error", "{deadlock:#}");
    let summary = deadlock["message"].as_str().expect("message");
    assert!(summary.starts_with("prepare.service starts libvirtd.service"), "{summary}");
    let shown = guest.file("units");
    let prepare = shown.split("\n\n").find(|u| u.contains("Id=prepare.service")).expect("unit");
    assert!(prepare.contains("Result=timeout"), "{prepare}");
}

#[test]
fn a_live_check_starts_a_few_programs() {
    // What they cost is for `make bench`.
    let started = boot("check_order").file("started");
    println!("{started}");
    let (before, after) = started.trim().split_once(' ').expect("two PIDs");
    let started = after.parse::<u32>().expect("PID") - before.parse::<u32>().expect("PID");
    assert!(started < 50, "{started} processes and threads");
}

#[test]
fn a_binary_journal_is_diagnosed_as_its_text() {
    let guest = boot("check_faults");
    guest.assert_success();
    let program = stage::installed().expect("installed").join("usr/sbin/ibprov");
    let told = |name: &str| -> Vec<(String, String)> {
        let path = guest.out.join(name);
        let run = Command::new(&program)
            .args(["check", "--format", "json", "--log"])
            .arg(&path)
            .output()
            .expect("ibprov");
        assert_eq!(String::from_utf8_lossy(&run.stderr), "", "{name}");
        let report: Value = serde_json::from_slice(&run.stdout).expect("JSON");
        assert_valid(&report);
        let findings = report["findings"].as_array().expect("findings").iter();
        let text = |f: &Value, of: &str| f[of].as_str().expect("text").to_owned();
        findings.map(|f| (text(f, "code"), text(f, "severity"))).collect()
    };
    let file = std::fs::read_dir(guest.out.join("journal")).expect("journal");
    let machine = file.flatten().next().expect("machine id").file_name();
    let file = format!("journal/{}/system.journal", machine.to_string_lossy());
    let binary = told(&file);
    let errors: Vec<_> = binary.iter().filter(|(_, severity)| severity == "error").collect();
    assert!(errors.iter().any(|(code, _)| code == "driver-regression"), "{binary:?}");
    for name in ["journal", "journal.json", "journal.export"] {
        assert_eq!(told(name), binary, "{name}");
    }
    // These leave out which unit systemd speaks of.
    for name in ["journal.short", "journal.short-iso", "journal.short-monotonic"] {
        let told = told(name);
        assert!(errors.iter().all(|error| told.contains(error)), "{name}: {told:?}");
    }
}
