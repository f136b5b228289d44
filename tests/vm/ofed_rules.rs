//! MLNX_OFED's agent for interfaces, started by its own udev rule beside ibprov: it is
//! told of, and nothing counts as configured before it is through. One boot.

use std::time::Duration;

use serde_json::Value;

use crate::bed::journal::assert_in_order;
use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("ofed_rules", name)
}

fn port<'a>(report: &'a Value, netdev: &str) -> &'a Value {
    let ports = report["ports"].as_array().expect("ports");
    let found = ports.iter().find(|p| p["netdev"] == netdev);
    found.unwrap_or_else(|| panic!("no {netdev} in {report:#}"))
}

#[test]
fn what_it_sets_at_boot_is_set_right_before_the_network_starts() {
    assert_eq!(scene("booted ib0"), "active 2000 10.0.0.1/24");
    let guest = boot("ofed_rules");
    let journal = &guest.journal;
    assert_eq!(guest.file("networking"), "success\n");
    let theirs = journal.find("OS is booting, will not run ifup on ib0").expect("it ran");
    let ours = journal.find("ib0: set MTU 2000").expect("ours is set");
    assert_in_order(&[
        ("MLNX_OFED's agent", theirs.at),
        ("ibprov's setting", ours.at),
        ("ibprov.service", journal.started("ibprov.service")),
        ("networking.service", journal.started("networking.service")),
    ]);
    assert_eq!(port(&guest.boot_json(), "ib0")["reached"], "configured");
}

/// Its job waits for sysinit.target, and ib1 is as wanted until it runs.
#[test]
fn nothing_is_configured_while_its_job_is_still_to_run() {
    assert!(scene("booted ib1").starts_with("active 2044"), "{}", scene("booted ib1"));
    let guest = boot("ofed_rules");
    let journal = &guest.journal;
    let report = guest.boot_json();
    assert_eq!(port(&report, "ib1")["reached"], "configured");
    let moments = report["timeline"].as_array().expect("timeline");
    let of_ib1 = |rung: &str| {
        let is = |m: &&Value| {
            let climbed = &m["climbed"];
            climbed["rung"] == rung && climbed["expected"] == "0001:02:00.0"
        };
        let moment = moments.iter().find(is).unwrap_or_else(|| panic!("no {rung}: {moments:#?}"));
        Duration::from_micros(moment["usec"].as_u64().expect("time"))
    };
    let begins = journal.find("Setting up Mellanox network interface: ib1").expect("it ran");
    let ends = journal.find("OS is booting, will not run ifup on ib1").expect("it ran");
    assert_in_order(&[
        ("ib1 has its name", of_ib1("named")),
        ("sysinit.target", journal.started("sysinit.target")),
        ("MLNX_OFED's agent begins", begins.at),
        ("MLNX_OFED's agent ends", ends.at),
        ("ib1 is configured", of_ib1("configured")),
        ("ibprov.service", journal.started("ibprov.service")),
    ]);
}

#[test]
fn status_check_and_import_name_the_remedy() {
    let guest = boot("ofed_rules");
    let remedy = "ln -sf /dev/null /etc/udev/rules.d/90-ib.rules && udevadm control --reload";
    for (verb, remedy) in
        [("status", "ibprov migrate --apply"), ("check", remedy), ("import", remedy)]
    {
        let said = guest.file(verb);
        assert!(said.contains(remedy), "{verb}: {said}");
    }
    // Nothing else is: both interfaces are configured.
    let check = guest.file("check");
    assert!(check.contains("(errors: 0, "), "{check}");
    assert!(!check.contains("missing configured"), "{check}");
    // What is left to do by hand.
    assert_eq!(scene("import"), "1");
}

#[test]
fn an_interface_that_it_is_at_work_on_is_not_configured() {
    let line = scene("at work");
    assert!(line.ends_with(" active") && !line.starts_with("0 "), "{line}");
    let guest = boot("ofed_rules");
    let before = guest.json("at-work.json");
    let is_configured = |status: &Value| {
        let hcas = status["hcas"].as_array().expect("HCAs");
        let hca = hcas.iter().find(|h| h["pci"] == "0001:01:00.0").expect("the first");
        let reached = hca["ports"][0]["ladder"]["reached"].as_array().expect("rungs");
        assert!(reached.iter().any(|rung| rung == "named"), "{status:#}");
        reached.iter().any(|rung| rung == "configured")
    };
    assert!(!is_configured(&before), "{before:#}");
    let after = guest.json("rebound.json");
    assert!(is_configured(&after), "{after:#}");
}

#[test]
fn one_that_both_would_bring_up_is_brought_up_once_and_set_last_by_ibprov() {
    assert_eq!(scene("rebound"), "active 2000 10.0.0.1/24 ups=2");
}

#[test]
fn the_remedy_is_one() {
    assert_eq!(scene("masked"), "active 2000 runs 2 2");
    let guest = boot("ofed_rules");
    for name in ["masked", "masked.import"] {
        let said = guest.file(name);
        assert!(!said.contains("mlnx_interface_mgr"), "{name}: {said}");
    }
}

/// cloud-init has sysinit.target come after networking.service, and so after ibprov: a job that
/// waits for sysinit.target cannot be waited for.
#[test]
fn a_job_of_its_that_waits_for_ibprov_is_not_waited_for() {
    let guest = boot("ofed_cloud");
    guest.assert_success();
    let journal = &guest.journal;
    let chain = "ib1: mlnx_interface_mgr@ib1.service will configure it too, and starts only after ibprov (mlnx_interface_mgr@ib1.service after ";
    let told = journal.find(chain).unwrap_or_else(|| panic!("not told: {}", guest.stdout()));
    assert!(told.message.contains(" after networking.service after ibprov"), "{}", told.message);
    let begins = journal.find("Setting up Mellanox network interface: ib1").expect("it ran");
    assert_in_order(&[
        ("it is told", told.at),
        ("networking.service", journal.started("networking.service")),
        ("sysinit.target", journal.started("sysinit.target")),
        ("MLNX_OFED's agent begins", begins.at),
    ]);
    // network.timeout is 100 s.
    let waited = journal.started("networking.service").saturating_sub(told.at);
    assert!(waited < Duration::from_secs(30), "networking.service waited for {waited:?}");
    let report = guest.json("boot.json");
    assert_ne!(port(&report, "ib1")["reached"], "configured", "{report:#}");
    assert_eq!(machine::scene("ofed_cloud", "ib1 at boot"), "failed");
}

#[test]
fn what_such_a_job_has_set_is_set_right_afterwards() {
    assert_eq!(machine::scene("ofed_cloud", "agent"), "1");
    assert_eq!(machine::scene("ofed_cloud", "ib1"), "mtu 2044 later success");
    let ib1 = boot("ofed_cloud").json("ib1.json");
    assert_eq!(ib1["configured"], true, "{ib1:#}");
    // Left to ifupdown, and read back.
    assert_eq!(machine::scene("ofed_cloud", "ib0"), "mtu 2000 later success");
    let ib0 = boot("ofed_cloud").json("ib0.json");
    assert_eq!((&ib0["configured"], &ib0["bring_up"]), (&true.into(), &"up".into()), "{ib0:#}");
}
