//! `ibprov wait-online`: what is waited for comes, or it is said what does not.

use serde_json::Value;

use crate::bed::journal::assert_in_order;
use crate::bed::outcome::Outcome;
use crate::machine::boot;

/// The first port of a report, and its words for what is missing.
fn port(guest: &Outcome, name: &str) -> (Value, String) {
    let port = guest.json(&format!("{name}.json"))["ports"][0].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let cause = &port["cause"];
    let said =
        format!("{}: {} ({})", text(&port["missing"]), text(&cause["message"]), cause["advice"]);
    (port, said)
}

fn assert_said(guest: &Outcome, name: &str, texts: &[&str]) {
    let said = port(guest, name).1;
    for text in texts {
        assert!(said.contains(text), "{name}: {said:?} has no {text:?}");
    }
}

/// Seconds between what made a wait end and its end, systemctl's own time in it.
fn took(guest: &Outcome, name: &str) -> f64 {
    let times = guest.file(&format!("{name}.times"));
    let (before, after) = times.trim().split_once(' ').expect("two times");
    after.parse::<f64>().expect("time") - before.parse::<f64>().expect("time")
}

#[test]
fn every_wait_ends_with_its_code() {
    let guest = boot("online");
    let codes = guest.stdout();
    let want = "healthy: 0\naltname: 0\ncable: 3\nno-sm: 3\nno-sm-but-link: 0\nsm-comes: success\nstable: success\nsettings-come: success\ndown: 3\n\
        no-address: 3\naddress-comes: success\nno-child: 3\nchild-comes: success\nlate-card: success\npolicy: 3\n\
        policy-follow: success\nhostile: 2\nhostile: 2\nusage: 2\n";
    assert_eq!(codes, want, "{}", guest.file("stderr"));
}

#[test]
fn a_port_is_stable_when_it_has_been_online_without_interruption() {
    let guest = boot("online");
    let took = took(&guest, "stable");
    println!("stable after {took} s");
    assert!((5.0..15.0).contains(&took), "{took} s");
    let (port, _) = port(&guest, "stable");
    assert_eq!(port["online"], true, "{port:#}");
    assert_eq!(guest.json("stable.json")["goal"]["stable_sec"], 5);
}

#[test]
fn a_p_key_child_is_waited_for_by_itself() {
    let guest = boot("online");
    let (missing, said) = port(&guest, "no-child");
    assert!(said.contains("a P_Key child has to be created first"), "{missing:#}");
    let (online, _) = port(&guest, "child-comes");
    assert_eq!(online["netdev"], "ib0.8001", "{online:#}");
    assert!(took(&guest, "child-comes") < 5.0);
}

#[test]
fn status_that_is_watched_follows_a_driver_that_goes_and_comes() {
    let guest = boot("online");
    let watched = guest.file("watch");
    let drivers: Vec<String> = watched
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .map(|status| status["hcas"][0]["driver"].to_string())
        .collect();
    assert_eq!(drivers.first().map(String::as_str), Some("\"mlx5_core\""), "{watched}");
    assert!(drivers.iter().any(|driver| driver == "null"), "{watched}");
    assert_eq!(drivers.last().map(String::as_str), Some("\"mlx5_core\""), "{watched}");
}

#[test]
fn what_is_ordered_on_it_starts_on_a_working_fabric() {
    let guest = boot("online");
    let journal = &guest.journal;
    // Nothing orders these two to each other.
    for target in ["network-online.target", "remote-fs-pre.target"] {
        assert_in_order(&[
            ("wait-online", journal.started("ibprov-wait-online.service")),
            (target, journal.started(target)),
            ("job-daemon.service", journal.started("job-daemon.service")),
        ]);
    }
    // networking.service has set the address before the link, and need not be through.
    let (online, _) = port(&guest, "boot-online");
    assert_eq!(online["addresses"][0], "192.168.77.9/24", "{online}");
    journal.expect("job-daemon.service", "4: ACTIVE");
    let report = guest.json("boot-online.json");
    assert_eq!(report["verdict"], "ready");
    let usec = |name: &str| report[name].as_f64().expect("time");
    let waited = (usec("finished_usec") - usec("started_usec")) / 1e6;
    assert!(waited > 1.0, "the port became Active 6 s after its probe, yet {waited} s were waited");
    assert_eq!(guest.ordering_cycles(), Vec::<String>::new());
    let unit = guest.file("unit");
    assert!(unit.contains("StatusText=1 of 1 ports online after"), "{unit}");
}

#[test]
fn what_is_asked_by_hand_leaves_the_report_of_the_unit() {
    let guest = boot("online");
    assert_eq!(guest.json("last.json"), guest.json("boot-online.json"));
}

#[test]
fn an_online_port_is_shown_with_lid_and_address() {
    let guest = boot("online");
    let (port, _) = port(&guest, "healthy");
    assert_eq!((&port["online"], &port["state"]), (&true.into(), &"active".into()));
    assert!(port["lid"].as_u64().is_some_and(|lid| lid > 0), "{port}");
    assert_eq!(port["addresses"][0], "192.168.77.9/24");
}

#[test]
fn without_cable_it_says_so() {
    assert_said(&boot("online"), "cable", &["link: ", "no cable", "mlxlink -d 0001:01:00.0"]);
}

#[test]
fn without_a_subnet_manager_it_says_so_and_since_when() {
    let guest = boot("online");
    assert_said(
        &guest,
        "no-sm",
        &["active: ", "no subnet manager", "Initializing", "LID 1", "sminfo"],
    );
    let seconds = port(&guest, "no-sm").0["for_sec"].as_u64();
    assert!(matches!(seconds, Some(3 | 4)), "{seconds:?}");
    let text = guest.file("no-sm");
    assert!(text.contains("ib0, mlx5_0/1"), "{text}");
}

#[test]
fn a_subnet_manager_that_comes_late_ends_the_wait() {
    let guest = boot("online");
    let seconds = took(&guest, "sm-comes");
    assert_eq!(guest.json("sm-comes.json")["verdict"], "ready");
    assert!(seconds < 4.0, "{seconds} s after the subnet manager came");
}

#[test]
fn settings_that_are_made_end_the_wait_for_configured() {
    let guest = boot("online");
    let said = guest.file("unset");
    assert!(said.contains("not configured"), "{said}");
    let seconds = took(&guest, "settings-come");
    // Without an event it would look after 5 s.
    assert!(seconds < 4.0, "{seconds} s after the settings: their outcome tells of them");
    assert_eq!(port(&guest, "settings-come").0["reached"], "configured");
}

#[test]
fn a_netdev_that_nobody_brought_up_is_told_with_its_owner() {
    let texts = ["up: ", "ib0 is down", "ifupdown (/etc/network/interfaces)"];
    assert_said(&boot("online"), "down", &texts);
}

#[test]
fn a_missing_address_is_told_with_its_owner_and_heard_when_it_comes() {
    let guest = boot("online");
    let texts = ["address: ", "no address of global scope", "ifupdown (/etc/network/interfaces)"];
    assert_said(&guest, "no-address", &texts);
    let seconds = took(&guest, "address-comes");
    assert!(seconds < 4.0, "{seconds} s after the address: the kernel tells of it at once");
    assert_eq!(port(&guest, "address-comes").0["addresses"][0], "192.168.77.9/24");
}

#[test]
fn a_firmware_that_does_not_answer_hangs_nothing() {
    let said = boot("online").file("silent");
    assert!(
        said.contains("state unknown: the driver has not reported the state of the port for"),
        "{said}"
    );
}

#[test]
fn a_card_that_comes_late_ends_the_wait() {
    let guest = boot("online");
    let seconds = took(&guest, "late-card");
    assert!(seconds < 5.0, "{seconds} s after the bind");
    assert_eq!(port(&guest, "late-card").0["reached"], "named");
}

#[test]
fn a_vf_with_policy_down_is_told_and_comes_up_when_that_changes() {
    let guest = boot("online");
    assert_said(
        &guest,
        "policy",
        &["active: the link state of this VF is set to down", "set it to follow"],
    );
    assert_eq!(port(&guest, "policy-follow").0["state"], "active");
}

#[test]
fn a_hostile_name_is_a_name_that_nothing_has() {
    let guest = boot("online");
    let report = guest.json("hostile.json");
    assert_eq!(report["ports"][0]["expected"], "ib0;reboot");
    assert_eq!(report["ports"][1]["expected"], "-x");
    assert_eq!(report["verdict"], "not-begun", "nothing is still to come");
    assert_said(&guest, "hostile", &["pci: ", "(present: ", "(0001:01:00.0)"]);
    let usage = guest.json("usage.json");
    let text = usage["findings"][0]["message"].as_str().unwrap_or_default();
    assert!(text.contains("\"ib 0\" does not name a port"), "{usage:#}");
}
