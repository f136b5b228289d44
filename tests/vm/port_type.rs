//! Ports that change their type, on the distribution's own drivers: a port that the site
//! lists as InfiniBand and that is Ethernet is named, never called ready and never waited
//! for; it is as before once it is back. One boot.

use serde_json::Value;

use crate::bed::outcome::Outcome;
use crate::card::assert_sound;
use crate::machine::{self, boot};

const ONE: &str = "0001:01:00.0";
const TWO: &str = "0001:02:00.0";
/// Milliseconds in which what can never come is given up, on a busy host; the deadline
/// is 150 s, that of `wait-online` 90 s.
const AT_ONCE: u64 = 60_000;

fn scene(name: &str) -> String {
    machine::scene("port_type", name)
}

fn said(seen: &str, line: u32) -> String {
    format!("{seen}, and an InfiniBand port is expected (listed in /etc/ibprov/ibprov.toml:{line})")
}

const SEEN: &str = "the port is in Ethernet mode";

fn port(guest: &Outcome, report: &str, pci: &str) -> Value {
    let report = guest.json(report);
    let ports = report["ports"].as_array().expect("ports").clone();
    let found = ports.into_iter().find(|p| p["pci"] == pci);
    found.unwrap_or_else(|| panic!("no {pci} in {report:#}"))
}

/// Words and milliseconds of a line of the script.
fn timed(name: &str) -> (String, u64) {
    let line = scene(name);
    let (words, took) = line.rsplit_once(' ').expect("words and time");
    (words.to_owned(), took.parse().expect("ms"))
}

#[test]
fn one_that_comes_up_as_ethernet_is_missing_for_good_and_the_boot_goes_on() {
    let guest = boot("port_type");
    guest.assert_success();
    assert_sound(&guest);
    let report = guest.json("run-ibprov/boot.json");
    assert_eq!(report["verdict"], "ready", "the last one");
    let journal = &guest.journal;
    let line = journal.expect("ibprov.service", &said(SEEN, 6));
    let first = journal.expect("ibprov.service", "1 of 2 expected ports ready");
    assert!(line.at.as_secs() < 140 && first.at.as_secs() < 140, "waited for: {:?}", first.at);
    journal.failed("ibprov.service");
    // The network does not wait for it either.
    journal.started("network-pre.target");
    assert_ne!(scene("booted status"), "0");
    let status = guest.file("booted.status");
    assert!(status.contains(&said(SEEN, 6)), "{status}");
}

#[test]
fn wait_online_gives_up_at_once_and_says_what_to_do() {
    for (name, pci) in [("booted", TWO), ("other", ONE)] {
        let (code, took) = timed(&format!("{name} online"));
        let text = boot("port_type").file(&format!("{name}.online"));
        assert_eq!(code, "3", "{text}");
        assert!(took < AT_ONCE, "{took} ms: {text}");
        assert!(text.contains(SEEN) && text.contains("named on the command line"), "{text}");
        assert!(text.contains(&format!("run: mstconfig -d {pci} set LINK_TYPE_P1=1\n")), "{text}");
    }
}

#[test]
fn one_that_becomes_an_infiniband_port_is_ready() {
    let guest = boot("port_type");
    assert_eq!(scene("both status"), "0", "{}", guest.file("both.status"));
    // The kernel has read its class when it was found.
    assert_eq!(guest.file("both.classes"), "0x020700 0x020000 ");
    let (state, took) = timed("both boot");
    assert_eq!(state, "active");
    assert!(took < AT_ONCE, "{took} ms");
    assert_eq!(port(&guest, "both.boot.json", TWO)["netdev"], "ib1");
}

#[test]
fn one_that_becomes_an_ethernet_port_is_missing_before_and_after_it_is_found_anew() {
    let guest = boot("port_type");
    for (name, classes) in [("other", "0x020700 0x020000 "), ("found", "0x020000 0x020000 ")] {
        assert_eq!(guest.file(&format!("{name}.classes")), classes);
        assert_ne!(scene(&format!("{name} status")), "0");
        let status = guest.file(&format!("{name}.status"));
        assert!(status.contains(&said(SEEN, 3)), "{name}: {status}");
        let (state, took) = timed(&format!("{name} boot"));
        assert_eq!(state, "failed", "{name}");
        assert!(took < AT_ONCE, "{name}: {took} ms");
        let port = port(&guest, &format!("{name}.boot.json"), ONE);
        assert_eq!(
            (&port["ready"], &port["missing"]),
            (&false.into(), &"netdev".into()),
            "{port:#}"
        );
        assert_eq!(port["cause"]["message"], said(SEEN, 3));
        assert_eq!(port["cause"]["final"], true);
    }
}

#[test]
fn its_interface_and_its_vfs_are_refused_by_name() {
    let guest = boot("port_type");
    assert_eq!(scene("other iface"), "2", "{}", guest.file("other.iface"));
    assert_eq!(scene("other plan"), "3", "{}", guest.file("other.plan"));
    let plan = guest.file("other.plan");
    assert!(plan.contains("are in Ethernet mode"), "{plan}");
}

#[test]
fn back_again_all_is_as_before() {
    let guest = boot("port_type");
    assert_eq!(guest.file("back.classes"), "0x020700 0x020000 ");
    assert_eq!(scene("back status"), "0", "{}", guest.file("back.status"));
    assert_eq!(timed("back boot").0, "active");
    assert_eq!(port(&guest, "back.boot.json", ONE)["netdev"], "ib0");
}
