//! `ibprov iface` as its unit runs it, on a tree of files.

use crate::account::{facts, json};
use crate::host::Host;

#[test]
fn a_bond_of_ipoib_interfaces_is_none_of_ours_and_no_failure_of_the_unit() {
    let host = Host::healthy();
    let bond = "sys/class/net/bond0";
    host.file(&format!("{bond}/ifindex"), "9\n");
    host.file(&format!("{bond}/type"), "32\n");
    host.file(&format!("{bond}/uevent"), "DEVTYPE=bond\nINTERFACE=bond0\nIFINDEX=9\n");
    let unit = host.ibprov(&["iface", "--device=/sys/devices/virtual/net/bond0"]);
    let said = String::from_utf8_lossy(&unit.stderr);
    assert_eq!(unit.status.code(), Some(0), "{said}");
    assert!(
        said.contains("bond0 is a bond, not an IPoIB interface: ibprov does not change it"),
        "{said}"
    );
    // Who asks for it by name is told that it cannot be.
    let by_hand = host.ibprov(&["iface", "bond0", "--dry-run"]);
    assert_eq!(by_hand.status.code(), Some(2));
}

const PROFILE: &str = "etc/NetworkManager/system-connections/fabric.nmconnection";

/// A host that wants ib0 connected, with NetworkManager and its profile, enabled or not.
fn host_with_network_manager(enabled: bool) -> Host {
    let host = Host::healthy();
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[interface]]\nmatch.name = \"ib0\"\nmode = \"connected\"\n",
    );
    let unit = "lib/systemd/system/NetworkManager.service";
    host.file(unit, "[Service]\nExecStart=/usr/sbin/NetworkManager\n");
    let profile = "[connection]\nid=fabric\ntype=infiniband\ninterface-name=ib0\n[infiniband]\ntransport-mode=datagram\n";
    host.file(PROFILE, profile);
    if enabled {
        let link = "etc/systemd/system/multi-user.target.wants/NetworkManager.service";
        host.link(link, &format!("/{unit}"));
    }
    host
}

#[test]
fn a_profile_that_says_another_mode_is_named_before_it_is_written() {
    let host = host_with_network_manager(true);
    let want = "NetworkManager will set transport mode datagram when it brings the interface up, but mode = \"connected\" is configured (/etc/ibprov/ibprov.toml:1). Change one of the two: infiniband.transport-mode in /etc/NetworkManager/system-connections/fabric.nmconnection says datagram";
    let verbs = [["iface", "ib0", "--dry-run"].as_slice(), &["boot", "--dry-run"], &["status"]];
    for verb in verbs {
        let shown = host.show(verb);
        assert!(shown.contains(&format!("warning: ib0: {want}\n")), "{shown}");
    }
    let said = "warning setting-contradicted ib0".to_owned();
    for verb in verbs.into_iter().chain([["check"].as_slice()]) {
        let (_, report) = json(&host, verb);
        assert!(facts(&report).contains(&said), "{report:#}");
    }
    // What is not part of the boot writes nothing.
    let idle = host_with_network_manager(false).show(&["status"]);
    assert!(!idle.contains("will set transport"), "{idle}");
}

/// A host that wants `wanted` of ib0 (datagram, MTU 2044), where NetworkManager runs with a
/// profile that has `profile` in its section of InfiniBand, and a run of iface has left
/// `outcome`, JSON.
fn set_and_then_activated(wanted: &str, profile: &str, outcome: &str) -> Host {
    let host = Host::healthy();
    host.file("etc/ibprov/ibprov.toml", &format!("[[interface]]\nmatch.name = \"ib0\"\n{wanted}"));
    host.file("lib/systemd/system/NetworkManager.service", "[Service]\n");
    host.link("run/systemd/units/invocation:NetworkManager.service", "1f2e");
    let head = "[connection]\nid=fabric\ntype=infiniband\ninterface-name=ib0\n[infiniband]\n";
    host.file(PROFILE, &format!("{head}{profile}"));
    let outcome = format!(
        r#"{{"schema":1,"kind":"iface","netdev":"ib0","ifindex":2,"bring_up":"waiting","exit_code":1,{outcome}}}"#
    );
    host.file("run/ibprov/ports/2.json", &outcome);
    host
}

const SAYS_2044: &str = "ib0: MTU is 2044 since NetworkManager brought the interface up, but 4092 is configured: infiniband.mtu in /etc/NetworkManager/system-connections/fabric.nmconnection says 2044: change that, or mtu in the configuration";

/// No event tells of it: the run of iface had ended, without carrier.
#[test]
fn an_mtu_that_the_profile_wrote_after_the_run_had_ended_is_not_configured() {
    let made = r#""configured":true,"mtu_asked":4092,"wanted":{"mtu":4092}"#;
    let host = set_and_then_activated("mtu = 4092\n", "mtu=2044\n", made);
    let status = host.show(&["status"]);
    assert!(status.contains(SAYS_2044) && status.ends_with("exit 3\n"), "{status}");
    let check = host.show(&["check"]);
    assert!(check.contains(SAYS_2044), "{check}");
    // The next run of iface writes it again.
    let dry_run = host.show(&["iface", "ib0", "--dry-run"]);
    assert!(dry_run.contains("would set MTU 4092\n"), "{dry_run}");
}

#[test]
fn an_mtu_that_a_run_has_found_written_over_is_not_taken_for_the_fabrics() {
    let lost = format!(
        r#""configured":false,"mtu_asked":4092,"findings":[{{"severity":"error","code":"interface-not-configured","message":"{SAYS_2044}"}}]"#
    );
    let host = set_and_then_activated("mtu = 4092\n", "mtu=2044\n", &lost);
    let status = host.show(&["status"]);
    assert!(status.contains(SAYS_2044) && status.ends_with("exit 3\n"), "{status}");
    // Nor once the profile is mended: nobody has written it since.
    let host = set_and_then_activated("mtu = 4092\n", "mtu=4092\n", &lost);
    let dry_run = host.show(&["iface", "ib0", "--dry-run"]);
    assert!(dry_run.contains("would set MTU 4092\n"), "{dry_run}");
}

#[test]
fn an_mtu_that_the_fabric_holds_down_is_configured_whatever_else_the_profile_says() {
    for profile in ["", "mtu=4092\n", "mtu=1500\n"] {
        let made = r#""configured":true,"mtu_asked":4092,"wanted":{"mtu":4092}"#;
        let host = set_and_then_activated("mtu = 4092\n", profile, made);
        let (_, status) = json(&host, &["status"]);
        // What the profile will write is foreseen.
        let foreseen = (profile == "mtu=1500\n").then(|| "warning setting-contradicted ib0".into());
        assert_eq!(facts(&status), foreseen.into_iter().collect(), "{profile}: {status:#}");
        let dry_run = host.show(&["iface", "ib0", "--dry-run"]);
        assert!(!dry_run.contains("would set"), "{profile}: {dry_run}");
    }
    // A stack that has not started yet has written nothing: what it will write is foreseen.
    let made = r#""configured":true,"mtu_asked":4092,"wanted":{"mtu":4092}"#;
    let host = set_and_then_activated("mtu = 4092\n", "mtu=2044\n", made);
    host.remove("run/systemd/units/invocation:NetworkManager.service");
    host.link("etc/systemd/system/multi-user.target.wants/NetworkManager.service", "/dev/null");
    let status = host.show(&["status"]);
    assert!(status.contains("will set MTU 2044") && status.ends_with("exit 1\n"), "{status}");
}

#[test]
fn a_mode_that_the_profile_wrote_after_the_run_had_ended_is_told_with_its_key() {
    let host = set_and_then_activated(
        "mode = \"connected\"\n",
        "transport-mode=datagram\n",
        r#""configured":true,"mtu_asked":null,"wanted":{"mode":"connected"}"#,
    );
    host.file(
        "sys/class/net/ib0/address",
        "80:00:10:49:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:12:a4:80\n",
    );
    let status = host.show(&["status"]);
    let want = "ib0: transport mode is datagram since NetworkManager brought the interface up, but \"connected\" is configured: infiniband.transport-mode in /etc/NetworkManager/system-connections/fabric.nmconnection says datagram: change that, or mode in the configuration";
    assert!(status.contains(want) && status.ends_with("exit 3\n"), "{status}");
}

/// One that a file of its parent's has created shows its mode.
#[test]
fn a_child_whose_settings_have_changed_since_they_were_made_counts_in_status() {
    let host = Host::healthy();
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[interface]]\nmatch.name = \"ib0\"\n[[interface.partition]]\npkey = \"0x8001\"\nmode = \"connected\"\n",
    );
    let child = "sys/class/net/ib0.8001";
    let broadcast = "00:ff:ff:ff:ff:12:40:1b:80:01:00:00:00:00:00:00:ff:ff:ff:ff\n";
    let address = "80:00:10:4a:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:12:a4:80\n";
    for (attribute, value) in [
        ("type", "32\n"),
        ("ifindex", "9\n"),
        ("iflink", "2\n"),
        ("broadcast", broadcast),
        ("address", address),
        ("umcast", "0\n"),
        ("mtu", "2044\n"),
        ("flags", "0x1003\n"),
    ] {
        host.file(&format!("{child}/{attribute}"), value);
    }
    host.file(
        "run/ibprov/ports/9.json",
        r#"{"schema":1,"kind":"iface","netdev":"ib0.8001","ifindex":9,"bring_up":"waiting","exit_code":1,"configured":true,"mtu_asked":null}"#,
    );
    // Of one that was created by netlink sysfs shows no mode.
    let status = host.show(&["status"]);
    assert!(status.ends_with("exit 0\n"), "{status}");
    host.file(&format!("{child}/mode"), "connected\n");
    assert!(host.show(&["status"]).ends_with("exit 0\n"));
    host.file(&format!("{child}/mode"), "datagram\n");
    let status = host.show(&["status"]);
    let want = "the settings of ib0.8001 are not as configured";
    assert!(status.contains(want) && status.ends_with("exit 3\n"), "{status}");
    assert!(status.contains("ibprov iface ib0.8001"), "{status}");
}
