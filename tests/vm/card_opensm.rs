//! Debian's opensm on the software card (`tests/vm/card`, knob `sm=real`): subnet
//! manager, drivers and tools are real, ports and switch answer them.

use serde_json::Value;

use crate::bed::outcome::Outcome;
use crate::bed::scenario::Scenario;
use crate::bed::tools;
use crate::campaigns::{given, side_by_side};
use crate::card::assert_sound;
use crate::machine::{self, boot};

#[test]
fn the_distribution_s_subnet_manager_brings_the_ports_up() {
    let guest = boot("card_opensm");
    guest.assert_success();
    assert_sound(&guest);
    assert!(!guest.stdout().contains("not "), "{}", guest.stdout());
    assert_eq!(guest.file("states.before"), "2 2: INIT\n");
    assert_eq!(guest.file("states.after"), "2 4: ACTIVE\n");
    assert!(guest.file("sminfo").contains("SMINFO_MASTER"), "{}", guest.file("sminfo"));
    // The switch and both cards.
    let fabric = guest.file("fabric");
    let nodes = |kind: &str| fabric.lines().filter(|l| l.starts_with(kind)).count();
    assert_eq!((nodes("Switch"), nodes("Ca")), (1, 2), "{fabric}");
    let pings = guest.file("ping");
    assert!(pings.contains("3 received"), "{pings}\n{}", guest.stdout());
}

#[test]
fn a_port_without_a_subnet_manager_is_told_from_one_with() {
    let guest = boot("card_opensm");
    let port = |name: &str| guest.json(name)["hcas"][1]["ports"][0].clone();
    assert_eq!(port("before.json")["state"], "init");
    assert_eq!(port("after.json")["state"], "active");
    // A management packet over the switch to the other card and back.
    assert!(guest.file("nodeinfo").contains("0x0c42a10300a0b200"), "{}", guest.file("nodeinfo"));
}

/// The ports that a report names as not active, each with its severity.
fn inactive(report: &Value) -> Vec<String> {
    let all = report["findings"].as_array().expect("findings").iter();
    all.filter(|finding| finding["code"] == "port-not-active")
        .flat_map(|finding| {
            let text = |key: &str| finding[key].as_str().expect("a text").to_owned();
            let (severity, objects) = (text("severity"), text("object"));
            objects.split(", ").map(|o| format!("{severity} {o}")).collect::<Vec<_>>()
        })
        .collect()
}

/// The partition of a P_Key child, which opensm gives to the port as it is told.
#[test]
fn a_child_is_online_once_its_port_is_in_the_partition() {
    let guest = boot("card_opensm");
    for (name, code, words) in [
        ("lacking", 1, "neither 0x8012 nor 0x0012"),
        ("limited", 1, "has 0x0012, not 0x8012"),
        ("full", 0, ""),
    ] {
        let (status, check) =
            (guest.json(&format!("{name}.json")), guest.json(&format!("{name}.check.json")));
        // For check, ibprov's units are not enabled either.
        assert_eq!(status["exit_code"], code, "{name}: {status:#}");
        for report in [&status, &check] {
            let all = report["findings"].as_array().expect("findings").iter();
            let told: Vec<&Value> = all.filter(|f| f["code"] == "pkey-missing").collect();
            assert_eq!(told.len(), usize::from(code == 1), "{name}: {report:#}");
            for finding in told {
                let message = finding["message"].as_str().expect("a message");
                assert!(message.contains(words), "{name}: {report:#}");
            }
        }
        let metrics = guest.file(&format!("{name}.metrics"));
        assert!(metrics.contains(&format!("\nibprov_node_exit_code {code}\n")), "{metrics}");
    }
    // Without the P_Key IPoIB does not even ask.
    let lacking = guest.json("lacking.json");
    let all = lacking["findings"].as_array().expect("findings");
    let dark = all.iter().find(|finding| finding["code"] == "interface-not-online");
    let dark = dark.unwrap_or_else(|| panic!("{lacking:#}"));
    assert!(dark["object"].as_str().is_some_and(|object| object.ends_with(".8012")), "{dark:#}");
}

/// The VF has its GUIDs and its driver, and the subnet manager does not know virtual ports.
#[test]
fn a_vf_that_this_subnet_manager_does_not_serve_is_an_exception() {
    let guest = boot("card_opensm");
    for name in ["virtual.json", "virtual.check.json"] {
        let report = guest.json(name);
        let all = report["findings"].as_array().expect("findings").iter();
        let named: Vec<&Value> = all.filter(|f| f["code"] == "vf-port-not-active").collect();
        assert_eq!(named.len(), 1, "{}: {report:#}", guest.file("apply"));
        let object = named[0]["object"].as_str().expect("a port");
        assert!(object.ends_with("/1 (0001:01:00.1)"), "{report:#}");
        assert_eq!(named[0]["severity"], "warning", "{report:#}");
        assert_eq!(report["exit_code"], 1, "{report:#}");
    }
    let vf = &guest.json("virtual.json")["hcas"][0]["vfs"][0];
    assert_eq!(vf["ports"][0]["state"], "down", "{vf:#}");
    let metrics = guest.file("virtual.metrics");
    let line = "ibprov_findings{code=\"vf-port-not-active\",severity=\"warning\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}

#[test]
fn a_node_is_ready_only_with_a_subnet_manager() {
    let guest = boot("card_opensm");
    let (before, check) = (guest.json("before.json"), guest.json("before.check.json"));
    let named = inactive(&before);
    assert_eq!(named.len(), 2, "{before:#}");
    assert!(named.iter().all(|port| port.starts_with("error ")), "{before:#}");
    assert_eq!(inactive(&check), named, "{check:#}");
    let after = guest.json("after.json");
    assert_eq!(inactive(&after), [""; 0], "{after:#}");
    for (report, code, active) in [(&before, 3, 0), (&after, 0, 2)] {
        assert_eq!(report["exit_code"], code, "{report:#}");
        assert_eq!(report["expected_ports"]["active"], active, "{report:#}");
    }
    assert_eq!(check["exit_code"], 3, "{check:#}");
    // What explains it stands before it.
    assert_eq!(check["findings"][0]["code"], "no-subnet-manager", "{check:#}");
}

/// The names and states of the units of subnet managers.
fn units(text: &str) -> Vec<&str> {
    text.lines().collect()
}

/// What `status` says of each subnet manager.
fn states(report: &Value) -> Vec<&str> {
    let all = report["subnet_managers"].as_array().expect("a list").iter();
    all.map(|manager| manager["state"].as_str().expect("a word")).collect()
}

/// Consent is twofold: the entry and the target.
#[test]
fn nothing_is_started_by_the_package_an_entry_or_the_target_alone() {
    let guest = boot("card_opensm");
    assert_eq!(units(&guest.file("units.package")), [""; 0]);
    assert_eq!(units(&guest.file("units.entry")), [""; 0]);
    assert_eq!(states(&guest.json("entry.json")), ["not-enabled"; 2]);
    // Each ends quietly.
    let ended = guest.file("units.target");
    assert_eq!(ended.lines().count(), 2, "{ended}");
    assert!(units(&ended).iter().all(|unit| unit.contains(" inactive dead ")), "{ended}");
    let result = guest.file("result.target");
    assert!(
        result.contains("2 ExecMainStatus=64") && result.contains("2 Result=success"),
        "{result}"
    );
}

#[test]
fn one_subnet_manager_is_started_and_one_refused_with_the_reason() {
    let guest = boot("card_opensm");
    let report = guest.json("ours.json");
    assert_eq!(states(&report), ["master", "refused"], "{report:#}");
    let why = report["subnet_managers"][1]["reason"].as_str().expect("a reason");
    assert!(why.contains("would ignore virt_enabled of subnet-manager.options"), "{why}");
    assert!(why.contains("this opensm (3."), "{why}");
    let failed = guest.file("failed");
    assert_eq!(failed.matches("ibprov-opensm@").count(), 1, "{failed}");
    // Its own line, not that of any unit that has failed.
    let all = report["findings"].as_array().expect("findings").iter();
    let codes: Vec<&Value> = all.map(|finding| &finding["code"]).collect();
    assert!(codes.contains(&&"subnet-manager-not-running".into()), "{codes:?}");
    assert!(!codes.contains(&&"unit-failed".into()), "{codes:?}");
    let log = guest.file("sm.log");
    assert!(
        log.contains("Entering MASTER state") && log.contains("opensm is not started: "),
        "{log}"
    );
    // It can have keys of the fabric.
    assert_eq!(guest.file("opensm.conf.mode"), "600\n");
    assert!(guest.file("kept").contains("guid2lid"), "{}", guest.file("kept"));
    let metrics = guest.file("ours.metrics");
    assert!(metrics.contains(",state=\"master\"} 1\n"), "{metrics}");
    assert!(metrics.contains(",state=\"refused\"} 1\n"), "{metrics}");
}

/// The reason that `status` prints of a subnet manager.
fn reason(report: &Value, nth: usize) -> &str {
    report["subnet_managers"][nth]["reason"].as_str().expect("a reason")
}

/// A port of a VF has a device for subnet managers too.
#[test]
fn none_is_started_on_a_vf_by_hand_either() {
    let guest = boot("card_opensm");
    assert_eq!(machine::scene("card_opensm", "on a VF"), "69");
    let said = guest.file("on-a-vf");
    assert!(said.contains("the port is that of a VF"), "{said}");
}

const TWO: &str = "card_opensm_two";

/// What one machine shows: two subnet managers of ibprov stand in for each other, wait for one
/// that is neither theirs nor a peer, and go with their devices.
fn assert_two(guest: &Outcome) {
    guest.assert_success();
    assert_sound(guest);
    let said = guest.stdout();
    assert!(!said.contains("not: "), "{said}\n{}", guest.file("sm.log"));
    // The machine boots though sminfo hangs.
    let waits = guest.file("boot-waits-for");
    assert!(waits.starts_with("After=") && !waits.contains("ibprov-opensm@"), "{waits}");
    let hanging = guest.json("hanging.json");
    assert_eq!(states(&hanging), ["waiting"; 2], "{hanging:#}");
    for nth in 0..2 {
        let why = reason(&hanging, nth);
        assert!(why.ends_with("sminfo has not answered within 5 s"), "{why}");
    }
    // Another one has the fabric: its GUID, priority and LID.
    let waiting = guest.json("waiting.json");
    assert_eq!(states(&waiting), ["waiting"; 2], "{waiting:#}");
    let why = "0x0c42a10300ffff00 (priority 15, LID 1) is the subnet manager of this fabric and not one of peers";
    assert_eq!((reason(&waiting, 0), reason(&waiting, 1)), (why, why));
    assert_eq!(guest.file("status-text").trim(), why);
    assert!(said.contains("opensm beside the foreign master: 0 0\n"), "{said}");
    let told = guest.file("sm.log").matches(why).count();
    assert_eq!(told, 2, "once for each: {}", guest.file("sm.log"));
    let standby = guest.json("standby.json");
    assert_eq!(states(&standby), ["standby", "waiting"], "{standby:#}");
    assert_eq!(standby["subnet_managers"][0]["master_lid"], 1, "{standby:#}");
    let pair = guest.json("pair.json");
    assert_eq!(states(&pair), ["master", "standby"], "{pair:#}");
    assert_eq!(pair["subnet_managers"][1]["master_lid"], pair["hcas"][0]["ports"][0]["lid"]);
    assert!(guest.file("ping").contains("3 received"), "{}", guest.file("ping"));
    // An error in the file changes nothing, and by hand everything.
    assert!(said.contains("reload: 1\nreload: 0\n"), "{said}");
    assert!(said.contains("reload of one that waits: 0\n"), "{said}");
    assert_eq!(guest.file("pkeys.refused"), guest.file("pkeys.before"));
    assert!(guest.file("pkeys.before").contains("0x8010"), "{}", guest.file("pkeys.before"));
    assert!(!guest.file("pkeys.by-hand").contains("0x8010"), "{}", guest.file("pkeys.by-hand"));
    let bad = guest.json("bad.json");
    assert_eq!(states(&bad)[0], "refused", "{bad:#}");
    let why = reason(&bad, 0);
    assert!(why.starts_with("/etc/opensm/partitions.conf has an error"), "{why}");
    assert_eq!(states(&guest.json("unbound.json"))[0], "no-port");
    // Only one can run on a port.
    let same = guest.json("same-port.json");
    assert_eq!(states(&same)[0], "refused", "{same:#}");
    let why = reason(&same, 0);
    assert!(why.starts_with("opensm@0x0c42a10300a0b100.service has this port, and is "), "{why}");
    assert!(said.contains("config check beside it: 2\n"), "{said}");
    // No VF has an instance.
    assert!(said.contains("issm devices: 23\ninstances: 0 more\n"), "{said}");
    // A GUID that no port has, and that of an Ethernet port.
    let absent = guest.json("absent.json");
    assert_eq!(states(&absent)[2..], ["no-port"; 2], "{absent:#}");
    assert!(said.contains("config check: 2\n"), "{said}");
    let checked = guest.file("config-check");
    let told = checked.matches("no InfiniBand port of this host has the port GUID").count();
    assert_eq!(told, 2, "{checked}");
}

#[test]
#[ignore = "failover takes minutes"]
fn two_subnet_managers_stand_in_for_each_other_and_go_with_their_devices() {
    assert_two(&boot(TWO));
}

#[test]
#[ignore = "ten machines whose failover takes minutes"]
fn ten_machines_with_two_subnet_managers_come_to_the_same() {
    let count = given("IBPROV_CAMPAIGN_BOOTS").map_or(10, |n| usize::try_from(n).expect("few"));
    let scenarios = tools::project().join("tests/vm/scenarios");
    let scenario = Scenario::load(&scenarios, TWO).unwrap_or_else(|e| panic!("{e}"));
    let outcomes = side_by_side(count, |n| machine::run(&scenario, &format!("{TWO}-{n}")));
    for (n, outcome) in outcomes {
        assert_two(&outcome.unwrap_or_else(|e| panic!("machine {n}: {e}")));
    }
}
