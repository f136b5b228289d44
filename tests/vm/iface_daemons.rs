//! Interfaces on hosts whose network stack watches for them itself:
//! NetworkManager and systemd-networkd. One boot each.

use serde_json::Value;

use crate::machine::{boot, scene};

const NETWORKD: (&str, &str) = ("iface_networkd", "systemd-networkd");
const NETWORK_MANAGER: (&str, &str) = ("iface_nm", "NetworkManager");

fn outcome(scenario: &str, name: &str) -> Value {
    boot(scenario).json(&format!("{name}.json"))
}

fn assert_left_to((scenario, stack): (&str, &str)) {
    assert_eq!(scene(scenario, "before"), "active umcast=1 10.1.0.1/24");
    let outcome = outcome(scenario, "before");
    assert_eq!(outcome["bring_up"], "left", "{outcome}");
    let why = outcome["decision"]["reason"].as_str().expect("reason").to_owned();
    assert!(why.starts_with(&format!("{stack}.service has not started yet")), "{why}");
}

#[test]
fn networkd_is_left_what_is_there_before() {
    assert_left_to(NETWORKD);
}

#[test]
fn network_manager_is_left_what_is_there_before() {
    assert_left_to(NETWORK_MANAGER);
}

fn assert_brought_up_by((scenario, _): (&str, &str)) {
    for (name, net) in [("meanwhile", 1), ("late", 2), ("rebound", 2)] {
        let want = format!("active umcast=1 10.1.{net}.1/24");
        assert_eq!(scene(scenario, name), want, "{name}");
        assert_eq!(outcome(scenario, name)["bring_up"], "up", "{name}");
    }
    let ifup = boot(scenario).journal.find("running ifup").map(|e| e.message.clone());
    assert_eq!(ifup, None, "nobody else brings it up");
}

#[test]
fn networkd_brings_up_what_comes_meanwhile_or_later() {
    assert_brought_up_by(NETWORKD);
}

#[test]
fn network_manager_brings_up_what_comes_meanwhile_or_later() {
    assert_brought_up_by(NETWORK_MANAGER);
}

#[test]
fn p_key_children_that_were_left_to_networkd_are_looked_at_again() {
    let guest = boot(NETWORKD.0);
    assert!(!guest.stdout().contains("looked at again"), "{}", guest.stdout());
    for child in 1..=6 {
        assert_eq!(scene(NETWORKD.0, &format!("child ib0.800{child}")), "2000");
    }
}

#[test]
fn sixteen_p_key_children_that_come_at_once_are_set_up() {
    println!("{}", scene(NETWORKD.0, "sixteen took"));
    let ends = boot(NETWORKD.0).file("sixteen");
    let ends: Vec<&str> = ends.lines().map(str::trim).collect();
    assert_eq!(ends, ["16   \"bring_up\": \"up\"", "16   \"configured\": true,"]);
}

fn assert_named_with((scenario, _): (&str, &str), why: &str) {
    assert!(scene(scenario, "missed").starts_with("failed umcast=1"));
    let outcome = outcome(scenario, "missed");
    assert_eq!(outcome["configured"], true, "its settings are made: {outcome}");
    assert_eq!(outcome["exit_code"], 3);
    let failure = outcome["findings"][0]["message"].as_str().expect("failure").to_owned();
    assert!(failure.contains(why), "{failure}");
    let text = boot(scenario).file("dry-run.missed");
    assert!(text.contains("decision: the interface cannot come up: "), "{text}");
}

#[test]
fn networkds_profile_that_does_not_fit_is_named_with_why() {
    assert_named_with(
        NETWORKD,
        "60-wrong.network names the interface, but does not match: the configured address 98:03:9b:03:00:04 has the 6 bytes of Ethernet",
    );
}

#[test]
fn network_managers_profile_that_does_not_fit_is_named_with_why() {
    assert_named_with(
        NETWORK_MANAGER,
        "ib3.nmconnection does not match: the configured address 80:00:00:48:FE:80:00:00:00:00:00:00:00:02:C9:03:00:AA:00:01 ends in another port GUID",
    );
}

#[test]
fn networkd_is_asked_both_ways_with_one_result() {
    let guest = boot("iface_networkd");
    guest.assert_success();
    let decision = |name: &str| {
        let text = guest.file(name);
        text.split_once("queried by: ").expect("way").0.to_owned()
    };
    assert_eq!(decision("dry-run"), decision("dry-run.no-bus"));
    assert!(decision("dry-run").contains("50-ib0.network (configured)"), "{}", decision("dry-run"));
}

/// What a stack writes to ib0 and ib1, where connected mode and an MTU of 65520 are
/// wanted.
struct Written {
    scenario: &'static str,
    stack: &'static str,
    /// What the interface is like then.
    shown: &'static str,
    /// What is lost, as `ibprov` calls it, with what it is and what is wanted.
    lost: [&'static str; 3],
    /// The key that is wanted.
    key: &'static str,
    /// Where ib1's file says so.
    source: &'static str,
}

const WRITTEN: [Written; 2] = [
    Written {
        scenario: "iface_written_networkd",
        stack: "systemd-networkd",
        shown: "connected 2000",
        lost: ["MTU", "2000", "65520"],
        key: "mtu",
        source: "[Link] MTUBytes= in /etc/systemd/network/50-ib1.network says 2000",
    },
    Written {
        scenario: "iface_written_nm",
        stack: "NetworkManager",
        shown: "datagram 2044",
        lost: ["transport mode", "datagram", "\"connected\""],
        key: "mode",
        source: "infiniband.transport-mode in /etc/NetworkManager/system-connections/ib1.nmconnection says datagram",
    },
];

#[test]
fn what_the_stack_writes_over_is_told_and_is_not_configured() {
    // systemd-networkd that runs sets a new interface before the interface's instance
    // does, so what the instance sets holds.
    let by_network_manager = WRITTEN.into_iter().filter(|w| w.stack == "NetworkManager");
    for Written { scenario, stack, shown, lost, key, source } in by_network_manager {
        let [what, is, wanted] = lost;
        assert_eq!(scene(scenario, "ib1"), shown, "{scenario}");
        assert!(scene(scenario, "late").starts_with("failed "), "{scenario}");
        let outcome = outcome(scenario, "late");
        let state = (&outcome["configured"], &outcome["bring_up"], &outcome["exit_code"]);
        assert_eq!(state, (&false.into(), &"up".into(), &3.into()), "{outcome}");
        let failure = outcome["findings"][0]["message"].as_str().expect("failure").to_owned();
        let want = format!(
            "ib1: {what} is {is} since {stack} brought the interface up, but {wanted} is configured: {source}: change that, or {key} in the configuration"
        );
        assert_eq!(failure, want);
        let told = boot(scenario).journal.find(&want).map(|e| e.field("PRIORITY").to_owned());
        assert_eq!(told.as_deref(), Some("3"), "{scenario}");
    }
}

#[test]
fn what_the_stack_will_write_over_is_foreseen() {
    for Written { scenario, stack, shown, lost: [what, is, wanted], key, source } in WRITTEN {
        // It was there before: its settings were made, and left to a stack to come.
        assert_eq!(scene(scenario, "ib0"), shown, "{scenario}");
        let before = outcome(scenario, "before");
        let left = format!("ib0: configured; left to the network stack: {stack}.service");
        assert!(boot(scenario).journal.find(&left).is_some(), "{left}");
        let of_ib0 = source.replace("ib1", "ib0");
        let want = format!(
            "ib0: {stack} will set {what} {is} when it brings the interface up, but {key} = {wanted} is configured (/etc/ibprov/ibprov.toml:4). Change one of the two: {of_ib0}"
        );
        let is_told = |report: &Value| {
            let findings = report["findings"].as_array().expect("findings");
            findings.iter().any(|finding| finding["message"] == want)
        };
        assert!(is_told(&before), "{before}");
        let report = boot(scenario).json("boot.json");
        assert!(is_told(&report), "{}", report["findings"]);
        let status = boot(scenario).file("status");
        assert!(status.contains(&format!("warning: {want}\n")), "{status}");
        let dry_run = boot(scenario).file("dry-run");
        assert!(dry_run.contains("warning: ib1: ") && dry_run.contains(source), "{dry_run}");
    }
}

#[test]
fn what_was_left_to_a_stack_is_read_back_once_it_has_started() {
    for Written { scenario, stack, lost: [what, is, wanted], key, source, .. } in WRITTEN {
        assert_eq!(scene(scenario, "read back"), "failed", "{scenario}");
        let outcome = outcome(scenario, "read-back");
        let state = (&outcome["configured"], &outcome["bring_up"], &outcome["exit_code"]);
        assert_eq!(state, (&false.into(), &"up".into(), &3.into()), "{outcome}");
        let failure = outcome["findings"][0]["message"].as_str().expect("failure").to_owned();
        let source = source.replace("ib1", "ib0");
        let want = format!(
            "ib0: {what} is {is} since {stack} brought the interface up, but {wanted} is configured: {source}: change that, or {key} in the configuration"
        );
        assert_eq!(failure, want);
        let told = boot(scenario).journal.find(&want).map(|e| e.field("PRIORITY").to_owned());
        assert_eq!(told.as_deref(), Some("3"), "{scenario}");
        let status = boot(scenario).file("status");
        assert!(status.contains(&want), "{status}");
    }
}

#[test]
fn a_stack_that_writes_what_is_wanted_is_no_fault() {
    for Written { scenario, .. } in WRITTEN {
        assert_eq!(scene(scenario, "ib2"), "connected 65520", "{scenario}");
        assert!(scene(scenario, "agreed").starts_with("active "), "{scenario}");
        let outcome = outcome(scenario, "agreed");
        assert_eq!(outcome["configured"], true, "{outcome}");
        let findings = outcome["findings"].as_array().expect("findings");
        assert!(findings.iter().all(|finding| finding["severity"] != "error"), "{outcome}");
    }
}

/// The run of iface has ended, and its outcome says that the interface is configured.
#[test]
fn an_mtu_that_is_written_at_a_later_activation_is_told_and_set_again_where_that_is_forced() {
    let guest = boot("iface_written_nm");
    let is = |line: &str| scene("iface_written_nm", line);
    let ended = |name: &str, code: &str| {
        assert_eq!(is(name), code, "{name}: {}", guest.file(name));
        guest.file(name)
    };
    ended("mtu.set", "0");
    // The profile will write another one at the next activation: status foresees it.
    let foreseen = "NetworkManager will set MTU 1500 when it brings the interface up";
    assert!(ended("mtu.set.status", "1").contains(foreseen));
    assert_eq!(is("mtu"), "ib2: datagram 1500");
    let want = "ib2: MTU is 1500 since NetworkManager brought the interface up, but 2044 is configured: infiniband.mtu in /etc/NetworkManager/system-connections/ib2.nmconnection says 1500: change that, or mtu in the configuration";
    for name in ["mtu.written.status", "mtu.written.boot"] {
        let told = ended(name, "3");
        assert!(told.contains(want), "{name}: {told}");
    }
    let deferred = ended("mtu.deferred", "1");
    assert!(deferred.contains("; deferred to the next boot: set MTU 2044"), "{deferred}");
    ended("mtu.again", "0");
    ended("mtu.again.boot", "0");
    assert!(ended("mtu.again.status", "1").contains(foreseen));
}

/// Exit status, mode and MTU after a command of the script.
fn used(name: &str) -> (String, String) {
    let line = scene("iface_written_networkd", &format!("used {name}"));
    let (code, settings) = line.split_once(' ').expect("exit status and settings");
    (code.to_owned(), settings.trim().to_owned())
}

/// `systemctl restart ibprov`, the habit of a site with openibd, below a mounted Lustre.
#[test]
fn what_is_edited_while_the_interface_is_in_use_is_deferred() {
    let guest = boot("iface_written_networkd");
    guest.assert_success();
    let now = |code: &str| (code.to_owned(), "connected 65520".to_owned());
    assert_eq!(used("restart"), now("0"));
    assert_eq!(scene("iface_written_networkd", "used unit"), "1 active ");
    let by =
        |uses: &str| format!("ib2 is in use: {uses}; deferred to the next boot: set MTU 60000");
    let address = by("ib2 has address 10.1.2.1/24");
    let command = "ibprov iface ib2 --force";
    let report = guest.json("used.json");
    let cause = &report["ports"][0]["cause"];
    assert_eq!((&report["verdict"], &cause["in_use"]), (&"exceptions".into(), &true.into()));
    assert_eq!(cause["message"], address, "{report:#}");
    assert_eq!(report["findings"][0]["severity"], "warning", "{report:#}");
    guest.journal.expect("ibprov.service", &address);
    for name in ["status", "iface", "iface.dry-run", "boot.dry-run"] {
        assert_eq!(used(name), now("1"), "{name}");
        let told = guest.file(&format!("used.{name}"));
        assert!(told.contains(&address), "{name}: {told}");
        assert!(told.contains(command), "{name}: {told}");
    }
    let status = guest.file("used.status");
    assert!(status.contains("1 of 1 expected ports active"), "{status}");
    assert_eq!(used("online"), now("0"), "{}", guest.file("used.online"));
    let child = by("ib2 is stacked with child2, child2 has address 10.9.0.1/24");
    let cm_id = by("kernel module ibsim_user owns a CM ID of its RDMA device");
    for (name, want) in [("child", child), ("cm-id", cm_id)] {
        assert_eq!(used(name), now("1"), "{name}");
        let told = guest.file(&format!("used.{name}"));
        assert!(told.contains(&want), "{name}: {told}");
    }
}

#[test]
fn what_is_edited_is_set_once_nobody_uses_the_interface_or_by_force() {
    let is = |code: &str, mtu: &str| (code.to_owned(), format!("connected {mtu}"));
    for (name, code, mtu) in [
        ("idle", "0", "60000"),
        ("by-hand", "1", "60000"),
        ("by-force", "0", "50000"),
        ("again", "1", "50000"),
        ("boot.by-force", "0", "40000"),
        ("end", "0", "40000"),
    ] {
        let told = boot("iface_written_networkd").file(&format!("used.{name}"));
        assert_eq!(used(name), is(code, mtu), "{name}: {told}");
    }
}

/// NetworkManager never activates a profile by itself on a P_Key child that another program
/// has created.
#[test]
fn a_child_that_network_manager_creates_is_left_to_it_and_missed_while_it_is_not_there() {
    let is = |line: &str| scene("nm_child", line);
    let guest = boot("nm_child");
    let boot_report = guest.json("boot.json");
    assert_eq!(boot_report["exit_code"], 0, "{boot_report}");
    for name in ["boot", "up"] {
        assert_eq!(is(&format!("{name} online")), "0", "{}", guest.file(&format!("{name}.online")));
        assert_eq!(is(&format!("{name} addresses")), "ib0 10.1.0.1/24 ib0.8001 10.2.0.1/24 ");
        assert_eq!(is(&format!("{name} children")), "ib0.8001");
        assert_eq!(is(&format!("{name} status")), "0", "{}", guest.file(&format!("{name}.status")));
    }
    assert_eq!(is("boot umcast"), "1", "its own settings are ibprov's");
    assert_eq!(is("down addresses"), "ib0 10.1.0.1/24 ");
    let missing = "ib0: P_Key child 0x8001 does not exist yet; NetworkManager is to create it (/etc/NetworkManager/system-connections/child.nmconnection)";
    assert_eq!(is("down status"), "3");
    assert_eq!(is("down check"), "3");
    for file in ["down.status", "down.check", "down.dry-run"] {
        let text = guest.file(file);
        assert!(text.contains(missing), "{file}: {text}");
    }
    for name in ["boot", "down", "up"] {
        assert_eq!(is(&format!("{name} iface")), "0");
        let outcome = outcome("nm_child", name);
        assert_eq!(outcome["steps"], Value::Array(Vec::new()), "{name}: {outcome}");
        assert_eq!(outcome["configured"], true, "{name}: {outcome}");
    }
}
