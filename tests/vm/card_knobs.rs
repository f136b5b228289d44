//! Every knob of the card once: what the distribution's drivers make of it, and what
//! ibprov says and does. That a card behaves as the knob has it is a guess, as is a
//! default of its firmware; what the drivers do then is not.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::bed::outcome::Outcome;
use crate::card::assert_sound;
use crate::machine::boot;
use crate::vf_plan::planned;

const PLANNED: &str = "0001:01:00.0";
const RECOVERS: &str = "0001:02:00.0";
const GOES: &str = "0001:03:00.0";
const NO_SM: &str = "0001:04:00.0";
const SILENT: &str = "0001:05:00.0";
const ETHERNET: &str = "0001:06:00.0";

fn knobs() -> std::sync::Arc<Outcome> {
    let guest = boot("card_knobs");
    guest.assert_success();
    guest
}

fn assert_exit(guest: &Outcome, name: &str, code: u8) {
    let want = format!("{name}: {code}\n");
    assert!(guest.stdout().contains(&want), "want {want:?} in:\n{}", guest.stdout());
}

/// How long the script has waited for `name`, ms.
fn took(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|l| l.strip_prefix(&format!("{name} took: ")));
    line.unwrap_or_else(|| panic!("no time of {name} in:\n{text}")).parse().expect("ms")
}

/// `ADDRESS FILE` to what stood in it after the boot.
fn booted(guest: &Outcome) -> BTreeMap<String, String> {
    let text = guest.file("booted");
    let line = |l: &str| l.split_once(": ").map(|(k, v)| (k.to_owned(), v.to_owned()));
    text.lines().filter_map(line).collect()
}

fn hca(status: &Value, pci: &str) -> Value {
    let hcas = status["hcas"].as_array().expect("HCAs");
    let found = hcas.iter().find(|h| h["pci"] == pci);
    found.unwrap_or_else(|| panic!("no {pci} in {status:#}")).clone()
}

/// What is said of the VF, or of the PF, that is not as planned.
fn wrong(guest: &Outcome, name: &str) -> Vec<(u64, String)> {
    let report = guest.json(&format!("{name}.json"));
    let vfs = report["pfs"][0]["vfs"].as_array().expect("VFs").clone();
    let told = |v: &Value| {
        let cause = v["reason"].as_str().unwrap_or_default();
        (v["vf"].as_u64().expect("a number"), cause.to_owned())
    };
    vfs.iter().filter(|v| v["right"] != true).map(told).collect()
}

#[test]
#[ignore = "of the card itself: minutes"]
fn the_real_drivers_live_through_every_knob() {
    let guest = knobs();
    assert_sound(&guest);
    // What the script waited for in vain it says.
    let text = guest.stdout();
    let amiss =
        |l: &&str| ["stays", "has not", "not all", "does not"].iter().any(|w| l.contains(w));
    assert_eq!(text.lines().filter(amiss).collect::<Vec<_>>(), [""; 0], "{text}");
}

#[test]
#[ignore = "of the card itself: minutes"]
fn the_real_driver_shows_what_the_card_says_of_itself() {
    let guest = knobs();
    let booted = booted(&guest);
    let is = |address: &str, file: &str, want: &str| {
        let have = booted.get(&format!("{address} {file}")).map(String::as_str);
        assert_eq!(have, Some(want), "{address} {file}: {booted:#?}");
    };
    is(PLANNED, "0", "0xffff");
    is(PLANNED, "1", "0x8001");
    is(PLANNED, "2", "0x0000");
    is(GOES, "node_guid", "0c42:a103:00ff:0001");
    is(NO_SM, "rate", "50 Gb/sec (2X EDR)");
    is(SILENT, "rate", "400 Gb/sec (4X NDR)");
    is(SILENT, "fw_ver", "28.41.1000");
    is(SILENT, "board_id", "MT_0000000838");
    is(NO_SM, "current_link_speed", "8.0 GT/s PCIe");
    is(NO_SM, "current_link_width", "8");
    is(NO_SM, "state", "2: INIT");
    is(SILENT, "state", "2: INIT");
    is(RECOVERS, "state", "4: ACTIVE");
    is(ETHERNET, "link_layer", "Ethernet");
    // Two ports of one card are one system.
    is(RECOVERS, "sys_image_guid", "0c42:a103:00a0:b200");
    is("0001:02:00.1", "sys_image_guid", "0c42:a103:00a0:b200");
    is("0001:02:00.1", "node_guid", "0c42:a103:00a0:b210");
}

#[test]
#[ignore = "of the card itself: minutes"]
fn the_real_driver_gives_the_pages_that_it_is_asked_for() {
    let guest = knobs();
    let booted = booted(&guest);
    assert_eq!(booted.get("0001:01:00.0 page").map(String::as_str), Some("3600"));
    assert_eq!(booted.get("0001:01:00.0.1 page_of_pf").map(String::as_str), Some("300"));
    assert!(guest.stdout().contains("lent after: 300\n"), "{}", guest.stdout());
}

/// A capability with no VFs is to the kernel as none.
#[test]
#[ignore = "of the card itself: minutes"]
fn a_card_with_totalvfs_0_has_no_sriov() {
    let booted = booted(&knobs());
    assert!(booted.contains_key(&format!("{PLANNED} sriov_totalvfs")));
    assert!(!booted.contains_key(&format!("{NO_SM} sriov_totalvfs")));
}

#[test]
#[ignore = "of the card itself: minutes"]
fn product_data_is_read_slowly_not_at_all_or_is_not_there() {
    let guest = knobs();
    let text = guest.file("booted");
    let data =
        |address: &str| std::fs::read(guest.out.join(format!("vpd.{address}"))).expect("file");
    let has = |data: &[u8], what: &[u8]| data.windows(what.len()).any(|w| w == what);
    assert!(has(&data(PLANNED), b"SMDL=NIC"));
    assert!(has(&data("0001:02:00.1"), b"MCX653105A-HDAT"));
    assert!(took(&text, "vpd.0001:02:00.1") >= 100, "{text}");
    assert_eq!(data(GOES), b"");
    assert_eq!(data(NO_SM), b"");
    for (address, words) in [(GOES, "VPD access failed"), (NO_SM, "invalid VPD tag 0xff")] {
        let dmesg = guest.file("dmesg");
        let said = |l: &str| l.contains(address) && l.contains(words);
        assert!(dmesg.lines().any(said), "{address} {words}:\n{dmesg}");
    }
    assert!(guest.file(&format!("vpd.{ETHERNET}.error")).contains("No such file"));
}

#[test]
#[ignore = "of the card itself: minutes"]
fn status_names_the_port_without_an_sm() {
    let guest = knobs();
    let status = guest.json("booted.json");
    assert_eq!(hca(&status, NO_SM)["ports"][0]["state"], "init", "{status:#}");
    assert_eq!(hca(&status, NO_SM)["ports"][0]["rate"]["width"], 2, "{status:#}");
    let text = guest.file("booted.text");
    assert!(text.contains("INIT"), "{text}");
}

#[test]
#[ignore = "of the card itself: minutes"]
fn guids_that_firmware_drops_or_refuses_are_named() {
    let guest = knobs();
    assert_exit(&guest, "dropped", 3);
    let said = wrong(&guest, "dropped");
    assert_eq!(said.iter().map(|(vf, _)| *vf).collect::<Vec<_>>(), [0, 1], "{said:?}");
    let want = "the node GUID of the VF is 0200:0070:0000:0000 instead of 0200:0071:0000:0000";
    assert!(said[0].1.contains(want), "{said:?}");
    assert_exit(&guest, "refused", 3);
    let said = wrong(&guest, "refused");
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].1.contains("EIO"), "{said:?}");
    assert_exit(&guest, "set-now", 0);
    assert_eq!(guest.file("set-now"), planned("0200:0071", 0, 2));
}

#[test]
#[ignore = "of the card itself: minutes"]
fn policies_that_firmware_drops_or_refuses_are_named() {
    let guest = knobs();
    assert_exit(&guest, "no-policy", 3);
    let said = wrong(&guest, "no-policy");
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].1.contains("EINVAL"), "{said:?}");
    assert_exit(&guest, "policy-dropped", 3);
    let said = wrong(&guest, "policy-dropped");
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].1.contains("link state"), "{said:?}");
    assert_exit(&guest, "policy-now", 0);
}

#[test]
#[ignore = "of the card itself: minutes"]
fn a_vf_with_stale_guids_is_never_called_right() {
    let guest = knobs();
    assert_exit(&guest, "stale", 3);
    let said = wrong(&guest, "stale");
    assert_eq!(said.iter().map(|(vf, _)| *vf).collect::<Vec<_>>(), [1], "{said:?}");
    assert!(said[0].1.contains("although the VF was bound after its GUIDs were set"), "{said:?}");
    assert_exit(&guest, "fresh", 0);
    assert_eq!(guest.file("fresh"), planned("0200:0072", 0, 2));
}

#[test]
#[ignore = "of the card itself: minutes"]
fn a_vf_whose_probe_is_not_answered_or_has_no_pages_is_named() {
    let guest = knobs();
    assert_exit(&guest, "unanswered", 3);
    let said = wrong(&guest, "unanswered");
    assert_eq!(said.iter().map(|(vf, _)| *vf).collect::<Vec<_>>(), [1], "{said:?}");
    assert!(said[0].1.contains("ETIMEDOUT"), "{said:?}");
    assert_exit(&guest, "answered", 0);
    assert_exit(&guest, "starved", 3);
    let said = wrong(&guest, "starved");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].1.contains("ENOMEM"), "{said:?}");
    assert_exit(&guest, "fed", 0);
    assert_eq!(guest.file("fed"), planned("0200:0072", 0, 2));
}

#[test]
#[ignore = "of the card itself: minutes"]
fn slow_commands_take_their_time() {
    let text = knobs().stdout();
    assert!(took(&text, "slow.state") >= 700, "{text}");
    assert!(took(&text, "slow.all") >= 600, "{text}");
}

#[test]
#[ignore = "of the card itself: minutes"]
fn after_a_fatal_syndrome_the_real_driver_recovers_and_the_plan_is_had() {
    let guest = knobs();
    let health = guest.file("health");
    let line = |words: &str| {
        let all = |l: &&str| l.contains(RECOVERS) && words.split("...").all(|w| l.contains(w));
        let found = health.lines().find(all);
        found.unwrap_or_else(|| panic!("no {words:?} in:\n{health}"))
    };
    let at = |line: &str| -> f64 {
        let time = line.trim_start_matches('[').split(']').next().expect("time");
        time.trim().parse().expect("seconds")
    };
    let took = at(line("mlx5_error_sw_reset:...: end")) - at(line("Issuing FW Reset"));
    assert!(took >= 1.4, "the reset takes 1.5 s: {took}");
    for address in ["0001:02:00.0", "0001:02:00.1", "0001:02:00.2", "0001:02:00.3"] {
        let recovered = |l: &str| l.contains(address) && l.contains("health recovery succeeded");
        assert!(health.lines().any(recovered), "{address}:\n{health}");
    }
    assert_exit(&guest, "mended", 0);
    assert_eq!(guest.file("mended"), planned("0200:0070", 1, 2));
    let status = guest.json("recovered.json");
    assert_eq!(hca(&status, RECOVERS)["ports"][0]["state"], "active", "{status:#}");
}

#[test]
#[ignore = "of the card itself: minutes"]
fn a_vf_whose_recovery_has_failed_is_bound_again() {
    let guest = knobs();
    assert_exit(&guest, "lost.plan.json", 1);
    let plan = guest.json("lost.plan.json");
    let vfs = plan["pfs"].as_array().and_then(|pfs| pfs.iter().find(|pf| pf["pci"] == PLANNED));
    let vfs = vfs.and_then(|pf| pf["vfs"].as_array()).expect("VFs");
    let actions: Vec<_> = vfs.iter().map(|vf| vf["action"].as_str()).collect();
    assert_eq!(actions, [Some("keep"), Some("change")], "{plan:#}");
    assert_exit(&guest, "found", 0);
    assert_eq!(guest.file("found"), planned("0200:0072", 0, 2));
    assert_exit(&guest, "found.plan.json", 0);
}

#[test]
#[ignore = "of the card itself: minutes"]
fn a_syndrome_alone_does_not_reset_the_card() {
    let guest = knobs();
    assert_eq!(guest.file("not-reset"), "reset 0\n");
}

#[test]
#[ignore = "of the card itself: minutes"]
fn status_and_check_name_a_card_that_is_gone() {
    let guest = knobs();
    let text = guest.stdout();
    assert_exit(&guest, "gone.json", 3);
    assert!(took(&text, "gone.json") < 20_000, "{text}");
    let status = guest.json("gone.json");
    let gone = hca(&status, GOES);
    assert_eq!(gone["ladder"]["missing"], "rdma", "{gone:#}");
    assert_eq!(guest.file("states"), "1: DOWN\n2: INIT\n4: ACTIVE\n");
    let back = hca(&guest.json("back.json"), GOES);
    assert_eq!(back["ports"][0]["state"], "active", "{back:#}");
}

#[test]
#[ignore = "of the card itself: minutes"]
fn status_and_check_end_with_a_card_that_never_answers() {
    let guest = knobs();
    let text = guest.stdout();
    assert!(took(&text, "silent.json") < 20_000, "{text}");
    assert!(took(&text, "silent.check.json") < 20_000, "{text}");
    let status = guest.json("answers.json");
    assert_eq!(hca(&status, SILENT)["ports"][0]["state"], "active", "{status:#}");
}
