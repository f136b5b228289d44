//! Each line of the fabric counts: no log with a fault in it is healthy, whatever is written
//! around it, and nothing is said of a device of another kind.

use std::path::Path;

use ibprov::check::evidence::Intake;
use ibprov::check::{diagnose, rules};
use ibprov::model::common::{Code, Verdict, listed};
use ibprov::model::finding::{Diagnosis, Severity};

use crate::check::PUBLIC;

fn read(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tree/logs");
    std::fs::read_to_string(dir.join(name)).expect(name)
}

fn judge(sources: &[&str]) -> Diagnosis {
    let mut intake = Intake::new(rules::needles());
    for (at, text) in sources.iter().enumerate() {
        intake.read(&format!("log{at}"), &mut text.as_bytes());
    }
    diagnose(&intake.finish())
}

/// A log, and what has to be said of it.
struct Case {
    name: String,
    /// Its lines that begin with `> `, without that.
    told: Vec<String>,
    log: String,
}

/// The cases of a file in which each begins with `=== NAME`.
fn cases(file: &str) -> Vec<Case> {
    let table = read(file);
    let case = |case: &str| {
        let (name, case) = case.split_once('\n').expect("name");
        let (told, lines): (Vec<&str>, Vec<&str>) =
            case.trim_end().lines().partition(|line| line.starts_with("> "));
        let told = told.iter().filter_map(|line| line.strip_prefix("> ")).map(str::to_owned);
        Case { name: name.to_owned(), told: told.collect(), log: lines.join("\n") + "\n" }
    };
    table.split("\n=== ").skip(1).map(case).collect()
}

/// Logs of nodes that are healthy, as far as they tell.
fn healthy() -> Vec<(String, String)> {
    let is_good = |case: &Case| case.told.first().is_some_and(|told| told == "ready healthy");
    let words = cases("last-words.txt").into_iter().filter(is_good);
    // What comes after a shutdown is of no boot.
    let words = words.filter(|case| !case.name.contains("shutdown"));
    let public = PUBLIC.iter().filter(|(_, code)| *code == "healthy");
    let public = public.map(|(name, _)| format!("public/{name}"));
    let files = ["openibd-enabled.log", "noise-dgx.log", "noise-connectx3.log"].map(str::to_owned);
    let files = public.chain(files).map(|name| (name.clone(), read(&name)));
    words.map(|case| (case.name, case.log)).chain(files).collect()
}

/// Logs of nodes with a fault.
fn faulty() -> Vec<(String, String)> {
    /// A free port, or no fault of a port: nothing tells them from one beside a port that works.
    const MAY_BE_FREE: [&str; 4] = [
        "two ports without a cable have names, and no link",
        "a netdev without carrier, and nothing of its port",
        "ibdev2netdev says Down of a netdev, which is a word on its carrier",
        "the adapter is pulled out",
    ];
    let is_bad = |case: &Case| {
        let told = case.told.first().map(String::as_str).unwrap_or_default();
        !told.starts_with("ready") && !told.starts_with("unknown") && !case.log.trim().is_empty()
    };
    let words = cases("last-words.txt").into_iter().filter(is_bad);
    let words = words.filter(|case| !MAY_BE_FREE.contains(&case.name.as_str()));
    let all = words.chain(cases("faults.txt")).map(|case| (case.name, case.log));
    let is_fault = |code: &str| !["healthy", "harmless-warning", "unknown"].contains(&code);
    let public = PUBLIC.iter().filter(|(_, code)| is_fault(code));
    let public = public.map(|(name, _)| format!("public/{name}"));
    let files = public.chain(["openibd-disabled.log".to_owned()]);
    all.chain(files.map(|name| (name.clone(), read(&name)))).collect()
}

/// `log` with other adapters, RDMA devices and netdevs.
fn renamed(log: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':' || c == '.';
    let mut new = String::new();
    let mut rest = log;
    while let Some(begin) = rest.find(is_part) {
        let (head, tail) = rest.split_at(begin);
        let (word, tail) = tail.split_at(tail.find(|c| !is_part(c)).unwrap_or(tail.len()));
        new.push_str(head);
        new.push_str(&other_name(word));
        rest = tail;
    }
    new + rest
}

fn other_name(word: &str) -> String {
    let digits = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    for driver in ["mlx5_", "mlx4_", "hfi1_", "ib", "ibp", "ibs"] {
        if let Some(rest) = word.strip_prefix(driver).filter(|rest| digits(rest)) {
            return format!("{driver}7{rest}");
        }
    }
    match word.as_bytes() {
        // An address with a domain: another bus.
        [_, _, _, _, b':', bus, _, b':', _, _, b'.', ..] if !bus.is_ascii_punctuation() => {
            let (domain, at) = word.split_at(4);
            let domain = u16::from_str_radix(domain, 16).map_or(0, |d| d ^ 0x10);
            format!("{domain:04x}{at}")
        }
        _ => word.to_owned(),
    }
}

#[test]
fn each_fault_is_quoted_and_its_object_named() {
    let mut wrong = String::new();
    for Case { name, told, log } in cases("faults.txt") {
        let diagnosis = judge(&[&log]);
        let (object, line) = told[0].split_once(" | ").expect(&name);
        let findings = &diagnosis.findings;
        let quotes = || findings.iter().flat_map(|f| &f.evidence);
        let names = |text: &str| text.contains(object);
        let is_named = object == "-"
            || findings.iter().any(|f| names(&listed(&f.objects)) || names(&f.message))
            || quotes().any(|quote| names(&quote.text));
        let is_quoted = quotes().any(|quote| quote.text.contains(line));
        if diagnosis.verdict == Verdict::Ready || !is_named || !is_quoted {
            wrong += &format!("{name}: {:?} {is_named} {is_quoted}: {line}\n", diagnosis.verdict);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn no_fault_is_healthy_beside_a_healthy_log() {
    let (faulty, healthy) = (faulty(), healthy());
    assert!(faulty.len() > 80 && healthy.len() > 15, "{} {}", faulty.len(), healthy.len());
    // Each fault beside every fourth good log, and in a campaign beside all of them.
    let step = if std::env::var_os("PROPTEST_CASES").is_some() { 1 } else { 4 };
    let beside = |at: usize| {
        let (mut all, mut wrong) = (0, String::new());
        let (good_name, good) = &healthy[at];
        let other = renamed(good);
        for (name, bad) in faulty.iter().skip(at % step).step_by(step) {
            // Words of the same objects, the fault last; of others, in either order.
            // The times of these are those of the good log.
            let is_later = !name.ends_with("since")
                && !name.starts_with("one of two adapters")
                && !name.contains("6.14");
            let again = is_later.then(|| format!("{good}{bad}"));
            let others = [format!("{bad}{other}"), format!("{other}{bad}")];
            for log in again.into_iter().chain(others) {
                all += 1;
                if judge(&[&log]).verdict == Verdict::Ready {
                    wrong += &format!("{name}, with {good_name}\n");
                }
            }
        }
        (all, wrong)
    };
    let half = |odd: usize| (odd..healthy.len()).step_by(2).map(beside).collect::<Vec<_>>();
    let told = std::thread::scope(|scope| {
        let odd = scope.spawn(|| half(1));
        let mut told = half(0);
        told.extend(odd.join().expect("no panic"));
        told
    });
    let all: usize = told.iter().map(|(all, _)| all).sum();
    let wrong: String = told.into_iter().map(|(_, wrong)| wrong).collect();
    assert!(wrong.is_empty(), "{} of {all} are healthy:\n{wrong}", wrong.lines().count());
}

#[test]
fn the_order_of_sources_is_nothing() {
    for (name, bad) in faulty() {
        let good = renamed(&read("openibd-enabled.log"));
        let (one, other) = (judge(&[&bad, &good]).verdict, judge(&[&good, &bad]).verdict);
        assert_eq!(one, other, "{name}");
        assert_ne!(one, Verdict::Ready, "{name}");
    }
}

#[test]
fn nothing_is_said_of_devices_that_are_not_of_the_fabric() {
    let strangers = [
        "nvidia 0000:1b:00.0: probe failed with error -5",
        "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.",
        "nvme nvme4: I/O 22 QID 3 timeout, aborting",
        "nvme 0000:1b:00.0: Unable to change power state from D3cold to D0, device inaccessible",
        "pcieport 0000:17:01.0: AER: Uncorrectable (Fatal) error message received from 0000:1b:00.0",
        "ixgbe 0000:1b:00.0: SR-IOV: bus number out of range",
        "ixgbe 0000:1b:00.0 eno1: NIC Link is Down",
        "i40e 0000:1b:00.0: probe of 0000:1b:00.0 failed with error -12",
        "igb 0000:1b:00.0: PCIe link lost, device now detached",
        "ntb_hw_amd 0000:1b:00.0: error: link timed out",
        "pci 0000:1b:00.0: BAR 7: failed to assign [mem size 0x01000000 64bit pref]",
        "DMAR: [DMA Write] Request device [1b:00.0] fault addr 0 [fault reason 05] PTE Write access is not set",
        "megaraid_sas 0000:1b:00.0: Firmware crash dump is not available, FW in FAULT state",
    ];
    for (name, good) in healthy() {
        for stranger in strangers {
            // In the form of the log: with a host, or with the time since the start alone.
            let log = match good.trim_start().starts_with('[') {
                true => format!("{good}[ 9999.0] {stranger}\n"),
                false => format!("{good}Dec 31 23:59:58 n9 kernel: {stranger}\n"),
            };
            let diagnosis = judge(&[&log]);
            for finding in &diagnosis.findings {
                let advice: String = finding.advice.iter().map(|a| a.step.to_string()).collect();
                let object = listed(&finding.objects);
                let said = format!("{object} {} {advice}", finding.message);
                assert!(!said.contains("1b:00"), "{name}: {stranger}: {said}");
            }
            let grave = diagnosis.findings.iter().find(|f| f.severity != Severity::Info);
            assert!(grave.is_none(), "{name}: {stranger}: {grave:?}");
            let is_told = diagnosis.findings.iter().any(|f| f.code == Code::Unexplained);
            assert!(!is_told, "{name}: {stranger}");
        }
    }
}

#[test]
fn healthy_logs_with_their_noise_are_healthy() {
    for (name, good) in healthy() {
        assert_eq!(judge(&[&good]).verdict, Verdict::Ready, "{name}");
    }
}
