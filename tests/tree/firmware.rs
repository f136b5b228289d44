//! Settings in the firmware of adapters, as far as sysfs and the record of what was written
//! show them: no tool is run on a copied tree.

use expect_test::expect;

use crate::host::{Host, PF};

const SET: &str = "[[firmware]]\npci = \"4b:00.0\"\nset = { SRIOV_EN = true, NUM_OF_VFS = 16, LINK_TYPE_P1 = \"IB\" }\n";

fn host(vfs: &str) -> Host {
    let host = Host::healthy();
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), vfs);
    host.file("proc/sys/kernel/random/boot_id", "0b0b0b0b-2\n");
    host.file("etc/ibprov/ibprov.toml", SET);
    host
}

/// The lines of a verb that speak of it, and the exit code.
fn told(host: &Host, verb: &[&str]) -> String {
    let shown = host.show(verb);
    let is_of_it = |line: &&str| {
        ["NUM_OF_VFS", "ibprov firmware", "record", "exit "].iter().any(|word| line.contains(word))
    };
    shown.lines().filter(is_of_it).map(|line| format!("{}\n", line.trim())).collect()
}

/// Asserts that each verb says `words`, and none says `never`.
fn assert_all_say(host: &Host, verbs: &[&str], words: &str, never: &str) {
    for verb in verbs {
        let shown = host.show(&[verb]);
        assert!(shown.contains(words) && !shown.contains(never), "{verb}: {shown}");
    }
}

fn record(boot: &str, serial: &str) -> String {
    format!(
        r#"{{"format":1,"cards":[{{"pci":"{PF}","serial":{serial},"firmware":null,"settings":[{{"name":"NUM_OF_VFS","value":16,"boot_id":"{boot}","time":1,"said":null}}]}}]}}"#
    )
}

const RECORD: &str = "var/lib/ibprov/firmware.json";

#[test]
fn a_number_of_vfs_that_is_not_in_effect_is_told_by_every_verb() {
    let host = host("8\n");
    expect![[r#"
        warning: 0000:4b:00.0: NUM_OF_VFS = 16 is configured (/etc/ibprov/ibprov.toml:3), and the adapter has 8
        run: ibprov firmware --apply
        run: ibprov firmware 0000:4b:00.0
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's
        exit 1
    "#]].assert_eq(&told(&host, &["status"]));
    expect![[r#"
        warning: 0000:4b:00.0: NUM_OF_VFS = 16 is configured (/etc/ibprov/ibprov.toml:3), and the adapter has 8
        run: ibprov firmware --apply
        run: ibprov firmware 0000:4b:00.0
        exit 1
    "#]].assert_eq(&told(&host, &["plan"]));
    assert_all_say(&host, &["check", "metrics"], "firmware-not-as-configured", "reset-pending");
    assert!(!self::host("16\n").show(&["status"]).contains("NUM_OF_VFS"));
}

#[test]
fn the_record_tells_what_waits_for_a_reboot_from_what_a_boot_did_not_load() {
    let host = host("8\n");
    host.file(RECORD, &record("0b0b0b0b-2", "null"));
    expect![[r#"
        warning: 0000:4b:00.0: NUM_OF_VFS = 16 was written in this boot, and takes effect at the next reboot; the adapter has 8
        run: ibprov firmware 0000:4b:00.0
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's
        exit 1
    "#]].assert_eq(&told(&host, &["status"]));
    host.file(RECORD, &record("0a0a0a0a-1", "null"));
    expect![[r#"
        warning: 0000:4b:00.0: NUM_OF_VFS = 16 was written before this boot, and the adapter still has 8: power it off and on; do not write it again
        run: ibprov firmware 0000:4b:00.0
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's
        exit 1
    "#]].assert_eq(&told(&host, &["status"]));
    let check = host.show(&["check"]);
    assert!(check.contains("firmware-reset-pending"), "{check}");
    // Another adapter is in the slot.
    host.bytes(&format!("sys/bus/pci/devices/{PF}/vpd"), b"\x90\x05\x00SN\x02S2\x78");
    host.file(RECORD, &record("0a0a0a0a-1", "\"S1\""));
    let other = host.show(&["status"]);
    assert!(!other.contains("was written"), "{other}");
    host.file(RECORD, &record("0a0a0a0a-1", "\"S2\""));
    assert!(host.show(&["status"]).contains("was written before this boot"));
    // One that cannot be read says nothing.
    host.file(RECORD, "{");
    expect![[r#"
        warning: the host: /var/lib/ibprov/firmware.json is not a record of firmware settings: EOF while parsing an object at line 1 column 1. To go on without it: remove the file; what was written before is written again then
        warning: 0000:4b:00.0: NUM_OF_VFS = 16 is configured (/etc/ibprov/ibprov.toml:3), and the adapter has 8
        run: ibprov firmware --apply
        run: ibprov firmware 0000:4b:00.0
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's
        exit 1
    "#]].assert_eq(&told(&host, &["status"]));
}

#[test]
fn more_planned_vfs_than_the_firmware_allows_lead_to_the_verb_where_it_is_configured() {
    let pf = format!(
        "[[pf]]\npci = \"{PF}\"\nvfs = 12\nguid.template = \"02:00:00:00:00:12:{{kind:8}}:{{vf:8}}\"\n"
    );
    let host = host("8\n");
    host.file("etc/ibprov/ibprov.toml", &format!("{SET}{pf}"));
    let verbs = ["status", "plan", "check"];
    let ours = format!("run: ibprov firmware {PF} --apply\n");
    assert_all_say(&host, &verbs, &ours, "mstconfig");
    host.file("etc/ibprov/ibprov.toml", &pf);
    let theirs = format!("run: mstconfig -d {PF} set SRIOV_EN=1 NUM_OF_VFS=12\n");
    assert_all_say(&host, &verbs, &theirs, &ours);
}

#[test]
fn a_copied_tree_is_not_asked() {
    expect![[r#"
        error: firmware cannot be combined with --root: the adapters of a copied tree cannot be asked; `ibprov status --root` judges what the tree shows
        exit 2
    "#]].assert_eq(&host("8\n").show(&["firmware"]));
}
