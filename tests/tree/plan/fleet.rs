//! The plans of many hosts together.

use expect_test::expect;

use super::{good, node};
use crate::host::Host;

/// A directory with the pins of hosts, by name.
fn fleet(hosts: &[(&str, &str)]) -> Host {
    let dir = Host::new();
    for (name, text) in hosts {
        dir.file(&format!("fleet/{name}"), text);
    }
    dir
}

fn judged(dir: &Host) -> String {
    let fleet = dir.path("fleet").display().to_string();
    dir.show(&["plan", "--fleet", &fleet])
}

#[test]
fn a_fleet_is_judged_from_pins_and_plans() {
    let host = node(&good(2));
    let pins = |name: &str| {
        host.file("etc/hostname", &format!("{name}\n"));
        let shown = host.show(&["plan", "--pin"]);
        shown.strip_suffix("exit 1\n").expect("good").to_owned()
    };
    let (c12, c13) =
        (pins("c12"), pins("c13").replace("b859:9f03:0012:a480", "b859:9f03:0012:b480"));
    host.file("etc/hostname", "c14\n");
    let json = host.show(&["plan", "--format", "json"]).replace("exit 1\n", "");
    let json = json.replace("b859:9f03:0012:a480", "b859:9f03:0012:c480");
    let good = fleet(&[
        ("c12.toml", &c12),
        ("c13/etc/ibprov/guid-pins.toml", &c13),
        ("c14.json", &json),
        ("README", "not a plan\n"),
        (".hidden.toml", "neither\n"),
    ]);
    expect![[r#"
        3 hosts, 6 VFs: no GUID is used twice
        exit 0
    "#]]
    .assert_eq(&judged(&good));
    let partitions = |dir: &Host| {
        let fleet = dir.path("fleet").display().to_string();
        dir.show(&["plan", "--fleet", &fleet, "--partitions", "--pkey", "0x8010", "--ipoib"])
    };
    expect![[r#"
        vfs=0x0010,ipoib : 0x0200000c00010000=full ; # c12 0000:4b:00.0 VF 0
        vfs=0x0010,ipoib : 0x0200000c00010001=full ; # c12 0000:4b:00.0 VF 1
        vfs=0x0010,ipoib : 0x0200000d00010000=full ; # c13 0000:4b:00.0 VF 0
        vfs=0x0010,ipoib : 0x0200000d00010001=full ; # c13 0000:4b:00.0 VF 1
        vfs=0x0010,ipoib : 0x0200000e00010000=full ; # c14 0000:4b:00.0 VF 0
        vfs=0x0010,ipoib : 0x0200000e00010001=full ; # c14 0000:4b:00.0 VF 1
        exit 0
    "#]]
    .assert_eq(&partitions(&good));
    // One that lacks ports would take their partition from them.
    let unread = fleet(&[("c12.toml", &c12), ("c13.toml", "=")]);
    let said = partitions(&unread);
    assert!(!said.contains("vfs=") && said.ends_with("exit 2\n"), "{said}");
    // opensm takes what is printed, and knows whose GUIDs these are.
    let lines = partitions(&good).replace("exit 0\n", "");
    good.file("partitions.conf", &format!("Default=0x7fff,ipoib : ALL=full ;\n{lines}"));
    let fleet_dir = good.path("fleet").display().to_string();
    let checked = |dir: &str| good.show(&["opensm", "check", "--fleet", dir, "/partitions.conf"]);
    assert_eq!(checked(&fleet_dir), "/partitions.conf (2 partitions): as it is meant\nexit 0\n");
    let other = fleet(&[("c12.toml", &c12)]);
    let said = checked(&other.path("fleet").display().to_string());
    assert_eq!(said.matches("of no host of the fleet").count(), 4, "{said}");
    assert!(said.ends_with("exit 1\n"), "{said}");
    // A node installed from a copy of another's disk.
    let copied = fleet(&[("c12.toml", &c12), ("c13.toml", &c12)]);
    assert!(partitions(&copied).ends_with("exit 3\n"));
    expect![[r#"
        0200:000c:0000:0000 is used more than once
          c12: node of VF 0 of 0000:4b:00.0
          c13: node of VF 0 of 0000:4b:00.0
        0200:000c:0000:0001 is used more than once
          c12: node of VF 1 of 0000:4b:00.0
          c13: node of VF 1 of 0000:4b:00.0
        0200:000c:0001:0000 is used more than once
          c12: port of VF 0 of 0000:4b:00.0
          c13: port of VF 0 of 0000:4b:00.0
        0200:000c:0001:0001 is used more than once
          c12: port of VF 1 of 0000:4b:00.0
          c13: port of VF 1 of 0000:4b:00.0
        b859:9f03:0012:a480 is used more than once
          c12: node of the adapter 0000:4b:00.0
          c12: port of the adapter 0000:4b:00.0
          c13: node of the adapter 0000:4b:00.0
          c13: port of the adapter 0000:4b:00.0
        2 hosts, 4 VFs: 5 conflicts of GUIDs
        exit 3
    "#]]
    .assert_eq(&judged(&copied));
}

#[test]
fn a_fleet_that_is_not_seen_whole_is_not_judged() {
    expect![[r#"
        0 hosts, 0 VFs: no plan found: expected NAME.toml (pin file) or NAME.json (plan --format json) for each host
        exit 2
    "#]].assert_eq(&judged(&fleet(&[("README", "")])));
    let host = node(&good(17));
    let json = host.show(&["plan", "--format", "json"]).replace("exit 3\n", "");
    let dir = fleet(&[
        ("a.toml", "schema = 1\n[[pf]]\n"),
        ("b.json", "{}"),
        ("c.json", &json),
        ("d\u{1b}[2J.toml", "x"),
        ("e.toml/x", ""),
        ("g/etc/ibprov/ibprov.toml", ""),
        ("f.json", "{\"schema\": 2, \"pfs\": []}"),
    ]);
    expect![[r#"
        cannot read ROOT/fleet/a.toml: line 2: missing field `config`
        cannot read ROOT/fleet/b.json: missing field `schema` at line 1 column 2
        cannot read ROOT/fleet/c.json: PF 0000:4b:00.0 has no plan, because of errors
        cannot read ROOT/fleet/d�[2J.toml: line 1: key with no value, expected `=`
        cannot read ROOT/fleet/e.toml: EISDIR: Is a directory
        cannot read ROOT/fleet/f.json: the report has schema 2, but this ibprov reads schema 1
        cannot read ROOT/fleet/g: neither guid-pins.toml nor etc/ibprov/guid-pins.toml is in it
        0 hosts, 0 VFs: no plan found: expected NAME.toml (pin file) or NAME.json (plan --format json) for each host
        exit 2
    "#]].assert_eq(&judged(&dir));
    let none = Host::new();
    expect![[r#"
        error: ROOT/fleet: ENOENT: No such file or directory
        exit 2
    "#]]
    .assert_eq(&judged(&none));
}
