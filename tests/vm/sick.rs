//! A sick HCA: who asks it says that it does not answer, and shows the rest.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bed::outcome::Outcome;
use crate::machine::boot;

const SICK: &str = "0000:01:00.0";
const HEALTHY: &str = "0000:02:00.0";
/// Of three that ask at once, and of who asks after another, one waits for the answer itself.
const SAYS: [&str; 2] = ["did not answer within 5 s", "has not answered since"];
const RTNL: &str = "network settings cannot be read: a process holds the RTNL lock";

/// How the verb ended, and after how many seconds.
fn ended(guest: &Outcome, name: &str) -> (i32, f64) {
    let text = guest.stdout();
    let line = text.lines().find_map(|l| l.strip_prefix(&format!("{name}: ")));
    let line = line.unwrap_or_else(|| panic!("no line {name:?} in:\n{text}"));
    let (code, ms) = line.split_once(' ').expect("code and time");
    (code.parse().expect("code"), ms.parse::<f64>().expect("milliseconds") / 1e3)
}

/// What `check` and both forms of `status` gave in the state `kind`: they ended by
/// themselves, soon after the 5 s, said that the sick HCA has not answered, and showed
/// the other one's port.
fn assert_told(kind: &str) {
    let guest = boot("sick");
    guest.assert_success();
    for form in ["text", "json", "check"] {
        let name = format!("{kind}.{form}");
        let (code, seconds) = ended(&guest, &name);
        let healthy = ended(&guest, &format!("healthy.{form}"));
        println!("{name}: exit code {code} after {seconds} s, healthy {healthy:?}");
        // Emulated, and three at a time, its own work takes seconds.
        let limit = f64::max(10.0, 6.0 + 2.0 * healthy.1);
        assert!(
            seconds < limit,
            "{name}: {seconds} s instead of {limit} s\n{}",
            guest.file("stacks")
        );
        assert!(code <= 3, "{name}: exit code {code}");
        // check says on standard error what it could not look at.
        let text = guest.file(&name) + &guest.file(&format!("{name}.err"));
        let says = |line: &str| SAYS.iter().any(|says| line.contains(says));
        let silent = |hca| text.lines().any(|line| says(line) && line.contains(hca));
        let is_rtnl = kind == "rtnl";
        assert_eq!(silent(SICK), !is_rtnl, "{name}: {SAYS:?} and {SICK}:\n{text}");
        assert!(!silent(HEALTHY), "{name}: {text}");
        // RTNL is the whole host's: no adapter is accused, and the node is not ready.
        assert_eq!(text.contains(RTNL), is_rtnl, "{name}: {text}");
        assert!(!is_rtnl || code != 0, "{name}: exit code {code}");
        assert_eq!(healthy.0, 0, "{}", guest.file(&format!("healthy.{form}")));
        assert!(!says(&guest.file(&format!("healthy.{form}"))));
    }
    assert_shown(&guest, kind);
}

/// The other HCA's port is shown as it is.
fn assert_shown(guest: &Outcome, kind: &str) {
    let status = guest.json(&format!("{kind}.json"));
    let hcas = status["hcas"].as_array().expect("HCAs");
    let healthy = hcas.iter().find(|h| h["pci"] == HEALTHY).unwrap_or(&Value::Null);
    assert_eq!(healthy["ports"][0]["state"], "active", "{status:#}");
    let text = guest.file(&format!("{kind}.text"));
    let headline = text.lines().next().unwrap_or_default();
    assert_eq!(headline.contains("a process holds the RTNL lock"), kind == "rtnl", "{text}");
    // The adapter's own lines begin with its RDMA device; findings stand before them.
    let is_adapter = |l: &&str| l.starts_with("mlx5_") && l.contains(HEALTHY);
    let mut lines = text.lines().skip_while(|l| !is_adapter(l));
    let port = lines.find(|l| l.starts_with("  port ")).unwrap_or_default();
    assert!(port.starts_with("  port 1  InfiniBand  ACTIVE"), "{text}");
}

#[test]
fn a_port_that_does_not_answer_is_told_and_the_other_shown() {
    assert_told("port");
}

/// node-problem-detector ends a plugin after 5 s.
#[test]
fn health_does_not_wait_for_a_port_that_does_not_answer() {
    let guest = boot("sick");
    let (code, seconds) = ended(&guest, "port.health");
    println!("port.health: {seconds} s");
    assert_eq!(code, 2);
    assert_eq!(guest.file("port.health"), "UNKNOWN: the node was not judged within 2 s\n");
    assert!(seconds < 5.0, "{seconds} s");
}

#[test]
fn vfs_that_are_not_answered_for_are_told_and_the_other_port_shown() {
    assert_told("vf");
}

#[test]
fn a_device_lock_that_is_held_is_told_and_the_other_port_shown() {
    assert_told("lock");
}

#[test]
fn rtnl_that_is_held_is_told_and_the_ports_shown() {
    assert_told("rtnl");
}

/// `boot` in the state `kind` gave up at its deadline.
fn assert_boot_ended(kind: &str) {
    let name = format!("{kind}.boot");
    let (code, seconds) = ended(&boot("sick"), &name);
    println!("{name}: exit code {code} after {seconds} s");
    assert_eq!(code, 3);
    assert!((3.0..5.0).contains(&seconds), "{seconds} s, with a deadline of 3 s");
}

#[test]
fn boot_ends_by_its_deadline_while_rtnl_is_held() {
    assert_boot_ended("rtnl");
}

#[test]
fn wait_online_ends_by_its_deadline_while_rtnl_is_held() {
    let (code, seconds) = ended(&boot("sick"), "rtnl.online");
    println!("rtnl.online: exit code {code} after {seconds} s");
    assert_eq!(code, 3);
    assert!((5.0..7.0).contains(&seconds), "{seconds} s, with a deadline of 5 s");
    let said = boot("sick").file("rtnl.online");
    assert!(said.contains("a process holds the RTNL lock"), "{said}");
}

/// The interface is the healthy adapter's.
#[test]
fn iface_ends_by_its_deadline_with_an_outcome_while_rtnl_is_held() {
    let guest = boot("sick");
    let (code, seconds) = ended(&guest, "rtnl.iface");
    println!("rtnl.iface: exit code {code} after {seconds} s");
    assert_eq!(code, 3);
    assert!((6.0..10.0).contains(&seconds), "{seconds} s, with a deadline of 6 s");
    let outcome = guest.json("rtnl.outcome");
    assert_eq!((&outcome["configured"], &outcome["exit_code"]), (&false.into(), &3.into()));
    let findings = outcome["findings"].as_array().expect("findings");
    let codes: Vec<&str> = findings.iter().filter_map(|f| f["code"].as_str()).collect();
    assert_eq!(codes, ["rtnl-held", "interface-not-configured"], "{outcome}");
    let told = findings[1]["message"].as_str().expect("message");
    assert!(told.contains(": set MTU 1500: the kernel has not answered within "), "{told}");
    // Once the lock is released, it is set.
    assert_eq!(ended(&guest, "released.iface").0, 0);
    assert_eq!(guest.json("released.outcome")["configured"], true);
}

/// The unit's run for the sick adapter's interface.
#[test]
fn a_unit_fails_with_an_outcome_while_rtnl_is_held() {
    let guest = boot("sick");
    assert!(!guest.stdout().contains("ibprov-iface"), "{}", guest.stdout());
    let held = guest.json("held.outcome");
    assert_eq!((&held["configured"], &held["rtnl_held"]), (&false.into(), &true.into()));
}

/// They have one deadline together, and are set up by hand once the lock is released.
#[test]
fn p_key_children_are_not_held_up_by_each_other_while_rtnl_is_held() {
    let guest = boot("sick");
    assert!(!guest.stdout().contains("is not set up"), "{}", guest.stdout());
    let (code, seconds) = ended(&guest, "children.started");
    println!("children.started: exit code {code} after {seconds} s");
    assert_eq!(code, 1);
    assert!((6.0..12.0).contains(&seconds), "{seconds} s, with a deadline of 6 s");
    assert_eq!(guest.file("children.outcomes").matches("\"rtnl_held\": true").count(), 4);
    assert_eq!(guest.file("children.mtu"), "1500\n".repeat(4));
    // Meanwhile status has named the unit.
    let report = guest.json("failed.json");
    let findings = report["findings"].as_array().expect("findings");
    let named = findings.iter().any(|finding| {
        finding["code"] == "unit-failed" && finding["object"] == "ibprov-children.service"
    });
    assert!(named, "{findings:#?}");
}

/// The child of `iface` sleeps uninterruptibly, so that not even SIGKILL ends it.
#[test]
fn iface_ends_by_its_deadline_while_the_registration_of_a_soft_roce_device_hangs() {
    let guest = boot("sick");
    let (code, seconds) = ended(&guest, "held.rxe");
    println!("held.rxe: exit code {code} after {seconds} s");
    assert_eq!(code, 3);
    assert!((4.0..10.0).contains(&seconds), "{seconds} s, with a deadline of 4 s");
    let said = guest.file("held.rxe.err");
    assert!(said.contains("rxe9 (eth9): soft RoCE device not created: "), "{said}");
    assert!(said.contains("it sleeps uninterruptibly in the kernel"), "{said}");
}

#[test]
fn boot_ends_by_its_deadline_while_a_device_lock_is_held() {
    assert_boot_ended("lock");
}

/// The kernel removes the link to the driver first, and sends the event last.
#[test]
fn boot_and_wait_online_end_by_their_deadlines_while_the_removal_of_a_driver_hangs() {
    assert_boot_ended("removal");
    let guest = boot("sick");
    let (code, seconds) = ended(&guest, "removal.online");
    println!("removal.online: exit code {code} after {seconds} s");
    assert_eq!(code, 3);
    assert!(seconds < 7.0, "{seconds} s, with a deadline of 5 s");
    // `  exe-812  [000] .....  61.3: opened: (do_sys_openat2+0x0/0x190) file="/sys/bus/...`
    let opened = guest.file("opened");
    let by = |program: &str| {
        let lines = opened.lines().filter(|line| line.trim_start().starts_with(program));
        lines.filter(|line| line.contains("driver_override")).collect::<Vec<_>>()
    };
    assert!(by("ibprov-").is_empty(), "{opened}");
    // Their children are asked, and are seen.
    assert!(by("exe-").iter().any(|line| line.contains(SICK)), "{opened}");
}

/// Some kernels take the device's lock for that file (`uevent_show()`); the guest's may
/// be none of them. boot heard of PCI functions and auxiliary devices meanwhile, and
/// looked up netdevs.
#[test]
fn boot_reads_no_uevent_file_of_a_pci_function_or_auxiliary_device() {
    let guest = boot("sick");
    let asked = guest.file("asked");
    // `  ibprov-812  [000] .....  61.3: asked: (uevent_show+0x0/0xf0) device="ib0"`
    let of = |programs: &[&str]| -> BTreeSet<String> {
        let by = |line: &&str| programs.iter().any(|p| line.trim_start().starts_with(p));
        let device =
            |line: &str| Some(line.split_once("device=\"")?.1.trim_end_matches('"').into());
        asked.lines().filter(by).filter_map(device).collect()
    };
    let ours = of(&["ibprov-", "exe-"]);
    println!("uevent files read by boot: {ours:?}");
    assert!(ours.iter().all(|d| !d.contains([':', '.'])), "{ours:?}");
    // Both would be seen.
    assert!(ours.contains("ib0"), "{asked}");
    assert!(of(&["cat-"]).contains(SICK), "{asked}");
}
