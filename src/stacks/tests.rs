//! Unit states and configurations of each stack, and what is made of them.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::network_manager::{Device, DeviceState};
use super::networkd::{AdministrativeState, Link};
use super::stack::{StackState, StackUnit};
use super::*;
use crate::config::{Problems, Source, resolve};
use crate::host::links;
use crate::host::unit::ActiveState;
use crate::model::stack::{Action, Decision};
use crate::names::Moment;

fn interface(name: &str, up: bool) -> Interface {
    let name = name.parse().expect("name");
    Interface { name, ifindex: 5, mode: None, umcast: None, up, ..Interface::ib0() }
}

fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let dir = crate::host::testing::tree(files, &[]);
    let root = Root::copy_at(dir.path()).expect("root");
    (dir, root)
}

/// `unit` in a state: `queued`, `starting`, `running`, `active`, `failed`,
/// `stopped`, `never`.
fn unit(name: &str, state: &str) -> UnitState {
    let (active, job, left) = match state {
        "queued" => ("inactive", 7, 0),
        "starting" => ("activating", 7, 0),
        "stopped" => ("inactive", 0, 99),
        "never" => ("inactive", 0, 0),
        "running" => ("active", 0, 0),
        other => (other, 0, 0),
    };
    UnitState {
        name: name.to_owned(),
        id: name.to_owned(),
        load: LoadState::Loaded,
        active: ActiveState::of(active),
        sub: if state == "running" { state.to_owned() } else { String::new() },
        job,
        inactive_enter: Moment::of_systemd(left),
        ..UnitState::default()
    }
}

fn decided(files: &[(&str, &str)], of: &Interface, units: &[UnitState], live: &Live) -> Decision {
    let (_dir, root) = tree(files);
    decide(&KNOWN.standings(&Files::of(&root), of, units, live), of)
}

fn says(stack: &dyn Stack, said: impl StackState + 'static) -> Live {
    let replies = vec![(stack.facts().name, Reply::State(Box::new(said)))];
    Live { replies, ..Live::default() }
}

/// One line for each state of `service`.
fn table(files: &[(&str, &str)], of: &Interface, service: &str, want: &Expect) {
    let mut text = String::new();
    for state in ["queued", "starting", "active", "failed", "stopped", "never"] {
        let decision = decided(files, of, &[unit(service, state)], &Live::default());
        writeln!(text, "{state}: {:?}: {}", decision.action, decision.why).expect("text");
    }
    want.assert_eq(&text);
}

const INTERFACES: (&str, &str) =
    ("/etc/network/interfaces", "source interfaces.d/*\nauto lo\niface lo inet loopback\n");

#[test]
fn ifupdown_auto() {
    let ib0 = ("/etc/network/interfaces.d/ib0", "auto ib0 \\\n  ib1\niface ib0 inet dhcp\n");
    table(
        &[INTERFACES, ib0],
        &interface("ib0", false),
        "networking.service",
        &expect![[r#"
            queued: Leave: networking.service has not started yet, and will bring the interface up (auto in /etc/network/interfaces)
            starting: WaitForService: networking.service is starting, and may have looked for the interface already (auto in /etc/network/interfaces)
            active: Ifup: networking.service finished before the interface appeared (auto in /etc/network/interfaces)
            failed: Ifup: networking.service finished before the interface appeared (auto in /etc/network/interfaces)
            stopped: Stuck: networking.service was stopped, and does not bring the interface up (auto in /etc/network/interfaces)
            never: Stuck: networking.service would bring the interface up (auto in /etc/network/interfaces), but is not part of this boot: systemctl enable --now networking.service
        "#]],
    );
    let up = interface("ib0", true);
    let recorded = ("/run/network/ifstate", "lo=lo\nib0=ib0\n");
    let active = [unit("networking.service", "active")];
    let action = |files: &[_], of: &Interface| decided(files, of, &active, &Live::default()).action;
    assert_eq!(action(&[INTERFACES, ib0, recorded], &up), Action::Nothing);
    // ifupdown2 has another record, which outlives the boot.
    let [objects, mark] =
        [("/var/tmp/network/ifstatenew", "\u{4}name\u{3}ib0"), ("/run/network/ifstatelock", "")];
    assert_eq!(action(&[INTERFACES, ib0, objects, mark], &up), Action::Nothing);
    assert_eq!(action(&[INTERFACES, ib0, objects], &up), Action::Ifup);
    let other = interface("ib0", false);
    assert_eq!(action(&[INTERFACES, ib0, recorded], &other), Action::IfupAgain);
    assert_eq!(action(&[INTERFACES, ib0], &interface("ib2", false)), Action::Nobody);
    let addressed = Live { addressed: true, ..Live::default() };
    for files in [&[INTERFACES, ib0, recorded][..], &[INTERFACES, ib0]] {
        assert_eq!(decided(files, &other, &active, &addressed).action, Action::IfupAnew);
    }
}

#[test]
fn ifupdown_hotplug_has_a_unit_of_its_own() {
    let file = ("/etc/network/interfaces", "allow-hotplug ib-a\niface ib-a inet dhcp\n");
    let of = interface("ib-a", false);
    let facts = KNOWN.facts().find_map(|facts| facts.own_unit.as_ref());
    let own = facts.expect("ifupdown's").of(&of);
    assert_eq!(own, "ifup@ib\\x2da.service");
    let mut text = String::new();
    for state in ["queued", "starting", "running", "active", "failed", "never"] {
        let units = [unit("networking.service", "active"), unit(&own, state)];
        let decision = decided(&[file], &of, &units, &Live::default());
        writeln!(text, "{state}: {:?}: {}", decision.action, decision.why).expect("text");
    }
    expect![[r#"
        queued: Leave: ifupdown's own unit for the interface is queued (allow-hotplug in /etc/network/interfaces)
        starting: WaitForHotplug: ifupdown's own unit for the interface is starting (allow-hotplug in /etc/network/interfaces)
        running: WaitForHotplug: ifupdown's own unit for the interface is starting (allow-hotplug in /etc/network/interfaces)
        active: StartHotplug: ifupdown's udev rule did not start its unit for the interface (allow-hotplug in /etc/network/interfaces)
        failed: Stuck: ifupdown's own unit for the interface has failed (allow-hotplug in /etc/network/interfaces): systemctl status 'ifup@ib-a.service'
        never: StartHotplug: ifupdown's udev rule did not start its unit for the interface (allow-hotplug in /etc/network/interfaces)
    "#]].assert_eq(&text);
}

#[test]
fn a_name_that_a_shell_would_trip_over_is_not_given_to_one() {
    let file =
        ("/etc/network/interfaces", "auto /*\niface ib0;reboot inet dhcp\niface -x inet dhcp\n");
    for name in ["ib0;reboot", "-x"] {
        let active = [unit("networking.service", "active")];
        let decision = decided(&[file], &interface(name, false), &active, &Live::default());
        assert_eq!(decision.action, Action::Stuck, "{name}");
        assert!(decision.is_wrong && decision.why.contains("to a shell"), "{decision:?}");
    }
}

#[test]
fn network_scripts() {
    let file = ("/etc/sysconfig/network-scripts/ifcfg-ib0", "DEVICE=ib0\nONBOOT=yes\n");
    table(
        &[file],
        &interface("ib0", false),
        "network.service",
        &expect![[r#"
            queued: Leave: network.service has not started yet, and will bring the interface up (/etc/sysconfig/network-scripts/ifcfg-ib0)
            starting: WaitForService: network.service is starting, and may have looked for the interface already (/etc/sysconfig/network-scripts/ifcfg-ib0)
            active: Ifup: network.service finished before the interface appeared (/etc/sysconfig/network-scripts/ifcfg-ib0)
            failed: Ifup: network.service finished before the interface appeared (/etc/sysconfig/network-scripts/ifcfg-ib0)
            stopped: Stuck: network.service was stopped, and does not bring the interface up (/etc/sysconfig/network-scripts/ifcfg-ib0)
            never: Stuck: network.service would bring the interface up (/etc/sysconfig/network-scripts/ifcfg-ib0), but is not part of this boot: systemctl enable --now network.service
        "#]],
    );
    let down = interface("ib0", false);
    let with = |text: &str, nm: &str| {
        let file = ("/etc/sysconfig/network-scripts/ifcfg-ib0", text);
        let units = [unit("network.service", "active"), unit("NetworkManager.service", nm)];
        let device =
            Device { state: DeviceState::Disconnected, managed: true, ..Device::default() };
        let live = match nm {
            "active" => says(&network_manager::NetworkManager, device),
            _ => Live::default(),
        };
        let decision = decided(&[file], &down, &units, &live);
        format!("{:?}: {}", decision.action, decision.why)
    };
    expect!["Verify: NetworkManager runs, and brings the interface up by itself (/etc/sysconfig/network-scripts/ifcfg-ib0 (disconnected))"].assert_eq(&with("DEVICE=ib0\n", "active"));
    expect![
        "Ifup: network.service finished before the interface appeared (/etc/sysconfig/network-scripts/ifcfg-ib0)"
    ]
    .assert_eq(&with("DEVICE=ib0\nNM_CONTROLLED=no\n", "active"));
    expect!["Nobody: network-scripts: ONBOOT=no in /etc/sysconfig/network-scripts/ifcfg-ib0"]
        .assert_eq(&with("DEVICE=ib0\nONBOOT=no\n", "never"));
    expect!["Stuck: network-scripts: /etc/sysconfig/network-scripts/ifcfg-ib0 does not match: the configured address 80:00:00:48:FE:80:00:00:00:00:00:00:00:02:c9:03:00:aa:00:01 ends in another port GUID"].assert_eq(&with(
        "DEVICE=ib0\nHWADDR=80:00:00:48:FE:80:00:00:00:00:00:00:00:02:c9:03:00:aa:00:01\n",
        "never",
    ));
    expect![[r#"Stuck: network-scripts: /etc/sysconfig/network-scripts/ifcfg-ib0 has this port's address, but is for "ib7""#]].assert_eq(&with(
        "DEVICE=ib7\nHWADDR=80:00:00:48:FE:80:00:00:00:00:00:00:b8:59:9f:03:00:12:A4:80\n",
        "never",
    ));
}

#[test]
fn an_alias_of_wicked_is_no_network_scripts() {
    let files = [
        ("/etc/sysconfig/network-scripts/ifcfg-ib0", "DEVICE=ib0\n"),
        ("/etc/sysconfig/network/ifcfg-ib0", "STARTMODE='hotplug'\nIPADDR=10.0.0.1/24\n"),
    ];
    let alias = UnitState { id: "wicked.service".to_owned(), ..unit("network.service", "active") };
    let units = [alias, unit("wicked.service", "active")];
    let decision = decided(&files, &interface("ib0", false), &units, &Live::default());
    let wicked = Some(wicked::Wicked.facts().name);
    assert_eq!((decision.stack, decision.action), (wicked, Action::Verify));
    expect![
        "wicked runs, and brings the interface up by itself (/etc/sysconfig/network/ifcfg-ib0 (STARTMODE=hotplug))"
    ]
    .assert_eq(&decision.why);
    for (text, why) in [
        ("STARTMODE=off\n", "no network stack has a configuration for the interface"),
        ("STARTMODE=manual\n", "wicked: STARTMODE=manual in /etc/sysconfig/network/ifcfg-ib0"),
    ] {
        let file = [("/etc/sysconfig/network/ifcfg-ib0", text)];
        let decision = decided(&file, &interface("ib0", false), &units, &Live::default());
        assert_eq!((decision.action, decision.why.as_str()), (Action::Nobody, why));
    }
    table(
        &[files[1]],
        &interface("ib0", false),
        "wicked.service",
        &expect![[r#"
            queued: Leave: wicked.service has not started yet, and will bring the interface up (/etc/sysconfig/network/ifcfg-ib0 (STARTMODE=hotplug))
            starting: WaitForService: wicked.service is starting, and may have looked for the interface already (/etc/sysconfig/network/ifcfg-ib0 (STARTMODE=hotplug))
            active: Verify: wicked runs, and brings the interface up by itself (/etc/sysconfig/network/ifcfg-ib0 (STARTMODE=hotplug))
            failed: Stuck: wicked.service has failed, and does not bring the interface up (/etc/sysconfig/network/ifcfg-ib0 (STARTMODE=hotplug)): systemctl status wicked.service
            stopped: Stuck: wicked.service was stopped, and does not bring the interface up (/etc/sysconfig/network/ifcfg-ib0 (STARTMODE=hotplug))
            never: Stuck: wicked.service would bring the interface up (/etc/sysconfig/network/ifcfg-ib0 (STARTMODE=hotplug)), but is not part of this boot: systemctl enable --now wicked.service
        "#]],
    );
}

#[test]
fn networkd_says_what_it_follows_and_near_misses_are_named() {
    let down = interface("ib0", false);
    let with = |state: &str, text: &str| {
        let record = ("/run/udev/data/n5", "I:1\nE:ID_NET_NAME_PATH=ibp75s0\n");
        let file = ("/etc/systemd/network/50-ib.network", text);
        let state = AdministrativeState::of(state);
        let live = says(&networkd::Networkd, Link { state, file: Some(file.0.to_owned()) });
        let decision =
            decided(&[file, record], &down, &[unit("systemd-networkd.service", "active")], &live);
        format!("{:?}: {}", decision.action, decision.why)
    };
    expect!["Verify: systemd-networkd runs, and brings the interface up by itself (/etc/systemd/network/50-ib.network (configured))"].assert_eq(&with("configured", "[Match]\nName=ib*\n"));
    expect!["Verify: systemd-networkd runs, but has not decided on the interface yet"]
        .assert_eq(&with("pending", "[Match]\nName=ib*\n"));
    expect!["Nobody: no network stack has a configuration for the interface"]
        .assert_eq(&with("unmanaged", "[Match]\nName=eth0\n[Network]\nName=ib0\n"));
    expect!["Stuck: systemd-networkd: /etc/systemd/network/50-ib.network is for ibp75s0, a name that ib0 could have had"].assert_eq(&with("unmanaged", "[Match]\nName=ibp75s0\n"));
    expect!["Stuck: systemd-networkd: /etc/systemd/network/50-ib.network names the interface, but does not match, because it also requires Driver=mlx5_core"].assert_eq(&with("unmanaged", "[Match]\nName=ib0\nDriver=mlx5_core\n"));
    expect!["Stuck: systemd-networkd: /etc/systemd/network/50-ib.network: the configured address 80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:12:a4:80 has this port's GUID, but systemd-networkd compares all 20 bytes, of which the first 4 change at every probe: match by Name= or Path="].assert_eq(&with(
        "unmanaged",
        "[Match]\nMACAddress=80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:12:a4:80\n",
    ));
    table(
        &[("/etc/systemd/network/50-ib.network", "[Match]\nName=ib0\n")],
        &down,
        "systemd-networkd.service",
        &expect![[r#"
            queued: Leave: systemd-networkd.service has not started yet; it then decides whether it takes the interface
            starting: WaitForService: systemd-networkd.service is starting
            active: Verify: systemd-networkd runs, but has not decided on the interface yet
            failed: Nobody: no network stack has a configuration for the interface
            stopped: Nobody: no network stack has a configuration for the interface
            never: Nobody: no network stack has a configuration for the interface
        "#]],
    );
}

#[test]
fn networkmanager_says_what_it_does_and_near_misses_are_named() {
    let down = interface("ib0", false);
    let with = |device: Device, text: &str| {
        let file = ("/etc/NetworkManager/system-connections/ib.nmconnection", text);
        let live = says(&network_manager::NetworkManager, device);
        let units = [unit("NetworkManager.service", "active")];
        let decision = decided(&[file], &down, &units, &live);
        format!("{:?}: {}", decision.action, decision.why)
    };
    let device = |state: u32, managed, profiles| Device {
        state: state.into(),
        managed,
        profiles,
        ..Device::default()
    };
    let good = "[connection]\ntype=infiniband\ninterface-name=ib0\n";
    let active = Device { active: Some("fabric".to_owned()), ..device(100, true, 1) };
    expect![[
        r#"Verify: NetworkManager runs, and brings the interface up by itself (activated, profile "fabric")"#
    ]]
    .assert_eq(&with(active, good));
    expect!["Verify: NetworkManager runs, and brings the interface up by itself (/etc/NetworkManager/system-connections/ib.nmconnection (unavailable))"].assert_eq(&with(device(20, true, 0), good));
    expect!["Stuck: NetworkManager: /etc/NetworkManager/system-connections/ib.nmconnection is for the interface, but NetworkManager does not manage it: unmanaged-devices in NetworkManager.conf, a udev rule with NM_UNMANAGED, or /etc/network/interfaces"].assert_eq(&with(device(10, false, 0), good));
    expect!["Nobody: no network stack has a configuration for the interface"]
        .assert_eq(&with(device(30, true, 0), ""));
    expect!["Stuck: NetworkManager: /etc/NetworkManager/system-connections/ib.nmconnection names the interface, but is of type ethernet, not infiniband"]
        .assert_eq(&with(device(30, true, 0), "[connection]\ntype=ethernet\ninterface-name=ib0\n"));
    expect![[r#"Stuck: NetworkManager: /etc/NetworkManager/system-connections/ib.nmconnection has this port's address, but is bound to the name "ibold""#]].assert_eq(&with(device(30, true, 0), "[connection]\ntype=infiniband\ninterface-name=ibold\n[infiniband]\nmac-address=80:00:00:48:FE:80:00:00:00:00:00:00:B8:59:9F:03:00:12:A4:80\n"));
    expect!["Stuck: NetworkManager: /etc/NetworkManager/system-connections/ib.nmconnection does not match: the configured address b8:59:9f:03:00:12:a4:80 is only the port GUID, but 20 bytes are required"].assert_eq(&with(device(30, true, 0), "[connection]\ntype=infiniband\ninterface-name=ib0\n[infiniband]\nmac-address=b8:59:9f:03:00:12:a4:80\n"));
    table(
        &[],
        &down,
        "NetworkManager.service",
        &expect![[r#"
        queued: Leave: NetworkManager.service has not started yet; it then decides whether it takes the interface
        starting: WaitForService: NetworkManager.service is starting
        active: Verify: NetworkManager runs, but has not decided on the interface yet
        failed: Nobody: no network stack has a configuration for the interface
        stopped: Nobody: no network stack has a configuration for the interface
        never: Nobody: no network stack has a configuration for the interface
    "#]],
    );
}

#[test]
fn of_two_that_claim_it_the_one_that_runs_counts() {
    let files = [
        ("/etc/network/interfaces", "auto ib0\niface ib0 inet dhcp\n"),
        ("/etc/sysconfig/network/ifcfg-ib0", "STARTMODE=auto\n"),
    ];
    let units = [unit("wicked.service", "never"), unit("networking.service", "failed")];
    let ifupdown = ifupdown::Ifupdown.facts().name;
    let decision = decided(&files, &interface("ib0", false), &units, &Live::default());
    assert_eq!((decision.stack, decision.action), (Some(ifupdown), Action::Ifup));
}

#[test]
fn each_service_is_ordered_after_the_ports() {
    for unit in [
        include_str!("../../units/ibprov.service"),
        include_str!("../../units/ibprov-iface@.service"),
        include_str!("../../units/ibprov-children.service"),
    ] {
        let before = unit.lines().filter_map(|l| l.strip_prefix("Before="));
        let before: Vec<&str> = before.flat_map(str::split_whitespace).collect();
        for facts in KNOWN.facts() {
            assert!(before.contains(&facts.service), "{} is not in {before:?}", facts.service);
        }
    }
    let later = include_str!("../../units/ibprov-iface-later@.service");
    let after = later.lines().filter_map(|l| l.strip_prefix("After="));
    let after: Vec<&str> = after.flat_map(str::split_whitespace).collect();
    for facts in KNOWN.facts() {
        assert!(after.contains(&facts.service), "{} is not in {after:?}", facts.service);
        assert!(facts.units.iter().any(|u| u.name == facts.service), "{}", facts.service);
    }
}

#[test]
fn what_a_stack_says_is_how_far_it_is() {
    let (down, up) = (interface("ib0", false), interface("ib0", true));
    let nm = |state: u32| Device { state: state.into(), ..Device::default() }.progress(&up);
    for (state, progress) in [
        (0, Progress::Undecided),
        (30, Progress::Undecided),
        (70, Progress::Working),
        (100, Progress::Up),
        (110, Progress::Working),
        (120, Progress::Failed),
    ] {
        assert_eq!(nm(state), progress, "{state}");
    }
    for (state, of, progress) in [
        ("", &up, Progress::Undecided),
        ("initialized", &up, Progress::Undecided),
        ("configuring", &up, Progress::Working),
        ("configured", &down, Progress::Working),
        ("configured", &up, Progress::Up),
        ("failed", &up, Progress::Failed),
    ] {
        let link = Link { state: AdministrativeState::of(state), file: None };
        assert_eq!(link.progress(of), progress, "{state}");
        assert_eq!(link.state.word(), state);
    }
    let live = Live::default();
    let wicked = wicked::Wicked.facts().name;
    assert_eq!(live.progress(wicked, &up), Progress::Up, "who cannot be asked");
    assert_eq!(live.progress(wicked, &down), Progress::Working);
    let nm = network_manager::NetworkManager.facts().name;
    let live = Live { replies: vec![(nm, Reply::Unreachable)], ..Live::default() };
    assert_eq!(live.progress(nm, &up), Progress::Working, "who could be asked, later");
}

#[test]
fn a_script_of_system_v_stands_for_its_stack_alone() {
    let of = interface("ib0", false);
    let (_dir, root) = tree(&[("/etc/init.d/network", "#!/bin/sh\n")]);
    let here: Vec<String> = KNOWN
        .on_disk(&root, &of)
        .into_iter()
        .filter(|s| s.view.phase != Phase::Absent)
        .map(|s| s.view.stack.to_string())
        .collect();
    assert_eq!(here, ["network-scripts"]);
}

/// A stack that is not known: all of it.
#[derive(Debug)]
struct ConnMan;

static CONNMAN: Facts = Facts {
    name: StackName::new("conn-man", "ConnMan"),
    service: "connman.service",
    units: &[StackUnit {
        name: "connman.service",
        role: NetworkRole::SetsUpOnce,
        descriptions: &["Connection service"],
    }],
    log_programs: &["connmand"],
    waiting_commands: &["connmand-wait-online"],
    looks_once: false,
    keeps_record: false,
    stumbles_over_addresses: false,
    own_unit: None,
    init_script: None,
};

impl Stack for ConnMan {
    fn facts(&self) -> &'static Facts {
        &CONNMAN
    }

    fn claim(
        &self,
        root: &Root,
        _interface: &Interface,
        _phase: Phase,
        _others: &dyn Fn(&str) -> Phase,
    ) -> Claim {
        let file = "/var/lib/connman/settings";
        let answer = if root.exists(file) { Answer::Yes } else { Answer::No };
        Claim::new(answer, file)
    }

    fn writes(
        &self,
        _root: &Files<'_>,
        _interface: &Interface,
        _others: &dyn Fn(&str) -> Phase,
    ) -> Vec<StackSetting> {
        Vec::new()
    }

    fn asked(&self, _root: &Root) -> Vec<(String, String)> {
        vec![("ib0".to_owned(), "/var/lib/connman/settings".to_owned())]
    }

    fn owner(&self, _root: &Root, _netdev: &IfName, _ifindex: u32) -> Option<Owner> {
        Some(Owner::Record("ConnMan".to_owned()))
    }
}

/// To be asked for it, systemd reads its file.
#[test]
fn a_unit_of_the_interface_alone_is_asked_for_where_a_stack_has_one_for_it() {
    let of = interface("ib0", false);
    let asked = |interfaces: &str| {
        let (_dir, root) = tree(&[("/etc/network/interfaces", interfaces)]);
        let units = KNOWN.units(&Files::of(&root), &of);
        units.into_iter().filter(|unit| unit.contains('@')).collect::<Vec<_>>()
    };
    let stanza = "iface ib0 inet dhcp\n";
    assert_eq!(asked(&format!("allow-hotplug ib0\n{stanza}")), ["ifup@ib0.service"]);
    for interfaces in [&format!("auto ib0\n{stanza}"), stanza, "allow-hotplug ib1\n", ""] {
        assert!(asked(interfaces).is_empty(), "{interfaces}");
    }
}

#[test]
fn another_stack_is_one_file_and_one_row() {
    const WITH: Stacks = Stacks(&[&ifupdown::Ifupdown, &ConnMan]);
    let of = interface("ib0", false);
    let (_dir, root) = tree(&[
        ("/var/lib/connman/settings", ""),
        ("/etc/network/interfaces", "iface ib0 inet dhcp\n"),
    ]);
    assert_eq!(WITH.units(&Files::of(&root), &of), ["networking.service", "connman.service"]);
    let units = [unit("networking.service", "active"), unit("connman.service", "active")];
    let standings = WITH.standings(&Files::of(&root), &of, &units, &Live::default());
    let decision = decide(&standings, &of);
    assert_eq!((decision.stack, decision.action), (Some(CONNMAN.name), Action::Verify));
    expect!["ConnMan runs, and brings the interface up by itself (/var/lib/connman/settings)"]
        .assert_eq(&decision.why);
    expect![[r#"{"action":"verify","stack":"conn-man"}"#]].assert_eq(
        &serde_json::json!({ "stack": decision.stack, "action": decision.action }).to_string(),
    );
    assert!(WITH.named(CONNMAN.name).is_some());
    assert_eq!(WITH.asked(&root, |_| true).len(), 1);
    let name = "ib0".parse().expect("name");
    assert_eq!(WITH.owner(&root, &name, 5).as_deref(), Some("ConnMan"), "its record counts first");
    assert_eq!(WITH.role("connman.service"), Some(NetworkRole::SetsUpOnce));
    assert_eq!(WITH.described("Connection service"), Some("connman.service"));
    assert_eq!(WITH.logging_as("connmand"), Some("connman.service"));
    assert_eq!(WITH.waited_for("connmand-wait-online"), Some("connman.service"));
}

#[test]
fn each_stacks_files_name_their_netdevs() {
    let files = [
        ("etc/network/interfaces", "auto lo ib0\niface ib0 inet dhcp\nallow-hotplug ib9\n"),
        ("etc/network/interfaces.d/x", "auto ib1\n"),
        ("etc/sysconfig/network-scripts/ifcfg-ib2", "ONBOOT=yes\n"),
        ("etc/sysconfig/network-scripts/ifcfg-storage", "DEVICE=\"ib3\"\nNM_CONTROLLED=no\n"),
        ("etc/sysconfig/network-scripts/ifcfg-ib6", "DEVICE=\n"),
        ("etc/sysconfig/network-scripts/ifcfg-", "ONBOOT=yes\n"),
        ("etc/sysconfig/network-scripts/ifcfg-ib8", "ONBOOT=no\n"),
        (
            "etc/NetworkManager/system-connections/a.nmconnection",
            "[connection]\ninterface-name=ib4\n",
        ),
        ("etc/systemd/network/10.network", "[Match]\nName=ib5 ib* eth0\n"),
        ("etc/systemd/network/10.link", "[Link]\nName=ib7\n"),
    ];
    let dir = crate::host::testing::tree(&files, &[]);
    let root = Root::copy_at(dir.path()).expect("root");
    let found = KNOWN.asked(&root, |n| n.is_empty() || n.starts_with("ib") && !n.contains('*'));
    let found: Vec<(&str, &str)> =
        found.iter().map(|a| (a.unit.trim_end_matches(".service"), a.netdev.as_str())).collect();
    assert_eq!(
        found,
        [
            ("networking", "ib0"),
            ("networking", "ib1"),
            ("network", "ib2"),
            ("NetworkManager", "ib2"),
            ("network", "ib6"),
            ("NetworkManager", "ib6"),
            ("network", "ib3"),
            ("NetworkManager", "ib4"),
            ("systemd-networkd", "ib5"),
        ]
    );
}

fn owner_with(path: &str, content: &str) -> Option<String> {
    let dir = crate::host::testing::tree(&[(path, content)], &[]);
    let root = Root::copy_at(dir.path()).expect("root");
    KNOWN.owner(&root, &"ib0".parse().expect("name"), 7)
}

#[test]
fn each_stack_is_told_by_what_it_has_written_down() {
    for (path, content, want) in [
        (
            "etc/network/interfaces",
            "auto ib0\niface ib0 inet static\n",
            "ifupdown (/etc/network/interfaces)",
        ),
        (
            "etc/network/interfaces.d/ib",
            "iface ib0 inet dhcp\n",
            "ifupdown (/etc/network/interfaces.d/ib)",
        ),
        (
            "run/systemd/netif/links/7",
            "ADMIN_STATE=configuring\nNETWORK_FILE=/etc/systemd/network/ib.network\n",
            "systemd-networkd (/etc/systemd/network/ib.network)",
        ),
        (
            "run/NetworkManager/devices/7",
            "[device]\nmanaged=1\n",
            "NetworkManager, which has no active profile on the interface",
        ),
        (
            "etc/sysconfig/network/ifcfg-ib0",
            "BOOTPROTO=dhcp",
            "wicked (/etc/sysconfig/network/ifcfg-ib0)",
        ),
    ] {
        assert_eq!(owner_with(path, content).as_deref(), Some(want));
    }
}

#[test]
fn another_netdevs_configuration_is_nobodys_claim() {
    assert_eq!(owner_with("etc/network/interfaces", "iface ib00 inet dhcp\n"), None);
    assert_eq!(owner_with("run/systemd/netif/links/7", "ADMIN_STATE=unmanaged\n"), None);
    assert_eq!(owner_with("run/NetworkManager/devices/7", "managed=0\n"), None);
}

proptest::proptest! {
    /// Whatever the files hold, there is a decision, and no shell is tricked.
    #[test]
    fn no_configuration_panics(text in "[ -~\n]{0,200}", state in 0_usize..6) {
        let state = ["queued", "starting", "active", "failed", "stopped", "never"][state];
        let files = [
            ("/etc/network/interfaces", text.as_str()),
            ("/etc/sysconfig/network-scripts/ifcfg-ib0", text.as_str()),
            ("/etc/systemd/network/a.network", text.as_str()),
            ("/etc/NetworkManager/system-connections/a", text.as_str()),
        ];
        let units: Vec<UnitState> = KNOWN.facts().map(|f| unit(f.service, state)).collect();
        let mut live = says(&network_manager::NetworkManager, Device::default());
        live.replies.extend(says(&networkd::Networkd, Link::default()).replies);
        let decision = decided(&files, &interface("ib0", false), &units, &live);
        proptest::prop_assert!(!decision.why.is_empty());
    }
}

/// A tree of these files, where these units are enabled.
fn tree_with(enabled: &[&str], files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = crate::host::testing::tree(files, &[]);
    for unit in enabled {
        let wants = dir.path().join("etc/systemd/system/multi-user.target.wants");
        std::fs::create_dir_all(&wants).expect("directory");
        let target = format!("/lib/systemd/system/{unit}");
        std::os::unix::fs::symlink(target, wants.join(unit)).expect("link");
    }
    dir
}

/// What the stacks that are enabled write to ib0, one line each.
fn written(enabled: &[&str], files: &[(&str, &str)]) -> String {
    let dir = tree_with(enabled, files);
    let root = Root::copy_at(dir.path()).expect("root");
    let lines = KNOWN.writes(&Files::of(&root), &interface("ib0", false));
    lines.iter().map(|(stack, setting)| format!("{stack}: {setting}\n")).collect()
}

#[test]
fn network_manager_writes_the_mode_of_its_profile_always() {
    let nm = ["NetworkManager.service"];
    let dir = "/etc/NetworkManager/system-connections";
    let (first, second) = (format!("{dir}/a.nmconnection"), format!("{dir}/b.nmconnection"));
    let plain = "[connection]\ntype=infiniband\ninterface-name=ib0\n";
    expect!["NetworkManager: /etc/NetworkManager/system-connections/a.nmconnection has no infiniband.transport-mode, which means datagram\n"]
        .assert_eq(&written(&nm, &[(&first, plain)]));
    assert_eq!(written(&[], &[(&first, plain)]), "", "it is not part of this boot");
    let connected = format!(
        "{plain}autoconnect-priority=5\n[infiniband]\ntransport-mode=connected\nmtu=65520\n"
    );
    expect![[r#"
        NetworkManager: infiniband.transport-mode in /etc/NetworkManager/system-connections/b.nmconnection says connected
        NetworkManager: infiniband.mtu in /etc/NetworkManager/system-connections/b.nmconnection says 65520
    "#]]
    .assert_eq(&written(&nm, &[(&first, plain), (&second, &connected)]));
    // A partition of its parent, which is ib0 or not, is another interface.
    let child = "[connection]\ntype=infiniband\n[infiniband]\np-key=32769\nparent=ib0\n";
    assert_eq!(written(&nm, &[(&first, child)]), "");
    let odd = format!("{plain}[infiniband]\ntransport-mode=\u{1b}[2J\nmtu=many\n");
    assert_eq!(written(&nm, &[(&first, &odd)]), "", "a profile that it does not load");
}

#[test]
fn a_child_that_network_manager_creates_is_left_to_it_where_it_is_enabled() {
    const DIR: &str = "/etc/NetworkManager/system-connections";
    const SCRIPTS: &str = "/etc/sysconfig/network-scripts";
    let rules = |text: &str| {
        let source = Source::new("t.toml".to_owned(), text.as_bytes().to_vec()).expect("a text");
        resolve(vec![source], Problems::default()).expect("a configuration").config.interfaces
    };
    let ours =
        rules("[[interface]]\nmatch.name = \"ib*\"\n[[interface.partition]]\npkey = \"0x8001\"\n");
    let ib0 = Interface { guid: "b859:9f03:0012:a480".parse().ok(), ..interface("ib0", false) };
    let creators = |enabled: &[&str], file: &str, text: &str| {
        let dir = tree_with(enabled, &[(file, text)]);
        let root = Root::copy_at(dir.path()).expect("root");
        assert_eq!(
            KNOWN.children(
                &root,
                &rules("[[interface]]\nmatch.name = \"ib0\"\n"),
                std::slice::from_ref(&ib0)
            ),
            []
        );
        let found = KNOWN.children(&root, &ours, std::slice::from_ref(&ib0));
        found.iter().map(|c| format!("{} {}: {}", c.stack, c.pkey, c.file)).collect::<Vec<_>>()
    };
    let nm = ["NetworkManager.service"];
    let profile = format!("{DIR}/child.nmconnection");
    let child = |more: &str| format!("[connection]\ntype=infiniband\n{more}");
    for by_it in [
        "[infiniband]\np-key=32769\nparent=ib0\n",
        "[infiniband]\np-key=0x1\nparent=ib0\n",
        "[infiniband]\np-key=32769\nmac-address=80:00:00:48:FE:80:00:00:00:00:00:00:B8:59:9F:03:00:12:A4:80\n",
    ] {
        let told = [format!("NetworkManager 0x8001: {profile}")];
        assert_eq!(creators(&nm, &profile, &child(by_it)), told, "{by_it}");
        assert_eq!(creators(&[], &profile, &child(by_it)), [""; 0], "it does not run: {by_it}");
    }
    for other in [
        "[infiniband]\np-key=32769\nparent=ib1\n",
        "[infiniband]\np-key=-1\nparent=ib0\n",
        "autoconnect=false\n[infiniband]\np-key=32769\nparent=ib0\n",
    ] {
        assert_eq!(creators(&nm, &profile, &child(other)), [""; 0], "{other}");
    }
    let by_it = child("[infiniband]\np-key=32769\nparent=ib0\n");
    assert_eq!(creators(&nm, &format!("{profile}~"), &by_it), [""; 0], "an editor's copy");
    let script = format!("{SCRIPTS}/ifcfg-ib0.8001");
    let text = "TYPE=InfiniBand\nDEVICE=ib0.8001\nPKEY=yes\nPKEY_ID=0x1\nPHYSDEV=ib0\n";
    assert_eq!(creators(&nm, &script, text), [format!("NetworkManager 0x8001: {script}")]);
    let not_its = format!("{text}NM_CONTROLLED=no\n");
    assert_eq!(creators(&nm, &script, &not_its), [""; 0]);
    assert_eq!(creators(&["network.service"], &script, text), [""; 0], "it takes what is there");
}

/// Its plugins are Debian's and RHEL 10's, or those of RHEL 8 and 9.
#[test]
fn network_manager_reads_ifcfg_files_by_its_plugin() {
    let file = "etc/sysconfig/network-scripts/ifcfg-ib0.8001";
    let text = "TYPE=InfiniBand\nDEVICE=ib0.8001\nPKEY=yes\nPKEY_ID=0x1\nPHYSDEV=ib0\n";
    let ifcfg = "libnm-settings-plugin-ifcfg-rh.so";
    let reads = |folder: &str, plugin: &str| {
        let plugin = format!("usr/{folder}/{plugin}");
        let files = [(file, text), (plugin.as_str(), "")];
        let dir = crate::host::testing::tree(&files, &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        KNOWN.asked(&root, |_| true).iter().any(|asked| asked.unit == "NetworkManager.service")
    };
    for folder in ["lib64/NetworkManager/1.52.0-1", "lib/x86_64-linux-gnu/NetworkManager/1.42.4"] {
        assert!(reads(folder, ifcfg), "{folder}");
        assert!(!reads(folder, "libnm-device-plugin-wifi.so"), "{folder}");
    }
    assert!(reads("lib/NetworkManager/conf.d", "10-x.conf"), "no folder of plugins");
}

#[test]
fn a_profile_for_no_netdev_asks_for_none() {
    let file = "/etc/NetworkManager/system-connections/a.nmconnection";
    let text = "[connection]\ntype=infiniband\ninterface-name=\n";
    let dir = crate::host::testing::tree(&[(file, text)], &[]);
    let root = Root::copy_at(dir.path()).expect("root");
    assert_eq!(KNOWN.asked(&root, |_| true), []);
}

#[test]
fn an_ifcfg_file_is_written_by_who_reads_it() {
    let file = "/etc/sysconfig/network-scripts/ifcfg-ib0";
    let nm = "NetworkManager.service";
    let with = |enabled: &[&str], text| written(enabled, &[(file, text)]);
    let connected = "DEVICE=ib0\nCONNECTED_MODE=yes\nMTU=65520\n";
    expect![[r#"
        NetworkManager: CONNECTED_MODE in /etc/sysconfig/network-scripts/ifcfg-ib0 says connected
        NetworkManager: MTU in /etc/sysconfig/network-scripts/ifcfg-ib0 says 65520
    "#]]
    .assert_eq(&with(&[nm, "network.service"], connected));
    expect!["network-scripts: /etc/sysconfig/network-scripts/ifcfg-ib0 has no CONNECTED_MODE, which means datagram\n"]
        .assert_eq(&with(&[nm, "network.service"], "DEVICE=ib0\nNM_CONTROLLED=no\n"));
    let file = "/etc/sysconfig/network/ifcfg-ib0";
    let wicked = |text| written(&["wicked.service"], &[(file, text)]);
    expect!["wicked: IPOIB_MODE in /etc/sysconfig/network/ifcfg-ib0 says connected\n"]
        .assert_eq(&wicked("STARTMODE=auto\nIPOIB_MODE='connected'\nMTU=0\n"));
    assert_eq!(wicked("STARTMODE=auto\n"), "", "it leaves the mode alone");
}

#[test]
fn networkd_writes_what_its_file_and_drop_ins_say() {
    let dir = "/etc/systemd/network";
    let (first, second) = (format!("{dir}/10-eth.network"), format!("{dir}/50-ib.network"));
    let with = |files: &[(&str, &str)]| written(&["systemd-networkd.service"], files);
    let ib = "[Match]\nName=ib*\n[Link]\nMTUBytes=2K\n[IPoIB]\nMode=connected\n";
    let eth = "[Match]\nName=eth0\nDriver=virtio_net\n[Link]\nMTUBytes=9000\n";
    expect![[r#"
        systemd-networkd: [IPoIB] Mode= in /etc/systemd/network/50-ib.network says connected
        systemd-networkd: [Link] MTUBytes= in /etc/systemd/network/50-ib.network says 2048
    "#]]
    .assert_eq(&with(&[(&first, eth), (&second, ib)]));
    let drop_in = "/run/systemd/network/50-ib.network.d/mode.conf";
    expect![[r#"
        systemd-networkd: [IPoIB] Mode= in /run/systemd/network/50-ib.network.d/mode.conf says datagram
        systemd-networkd: [Link] MTUBytes= in /etc/systemd/network/50-ib.network says 2048
    "#]]
    .assert_eq(&with(&[(&second, ib), (drop_in, "[IPoIB]\nMode=datagram\n")]));
    // A change of what netplan has made would be lost.
    let made = "/run/systemd/network/10-netplan-ib0.network";
    expect![[r#"
        systemd-networkd: [Link] MTUBytes= in /run/systemd/network/10-netplan-ib0.network says 2044; netplan writes that file at each boot from /etc/netplan/*.yaml: change mtu there and run `netplan apply`
    "#]]
    .assert_eq(&with(&[(made, "[Match]\nName=ib*\n[Link]\nMTUBytes=2044\n")]));
    // Whether this one fits cannot be told here: nothing is said.
    let unknown = "[Match]\nPath=pci-0000:4b:00.0\n";
    assert_eq!(with(&[(&first, unknown), (&second, ib)]), "");
    // What it says of itself counts.
    let record = (
        "/run/systemd/netif/links/5",
        "ADMIN_STATE=configured\nNETWORK_FILE=/etc/systemd/network/50-ib.network\n",
    );
    assert!(with(&[(&first, unknown), (&second, ib), record]).contains("says connected"));
}

/// systemd.network(5), `Name=`.
#[test]
fn networkd_takes_an_interface_by_an_alternative_name_too() {
    crate::host::testing::in_own_network(|| {
        links::tests::give_altname("ibp7s0");
        let root = Root::live();
        let dir = "/run/systemd/network";
        std::fs::create_dir_all(dir).expect("directory");
        let say = |name: &str| {
            let text = format!("[Match]\nName={name}\n[Link]\nMTUBytes=2040\n");
            std::fs::write(format!("{dir}/00-ib.network"), text).expect("file");
            let files = Files::of(&root);
            let of = |interface| networkd::Networkd.writes(&files, &interface, &|_| Phase::Absent);
            [of(interface("lo", true)).len(), of(interface("ib1", true)).len()]
        };
        assert_eq!(["lo", "ibp7s0", "ibp7s1"].map(say), [[1, 0], [1, 0], [0, 0]]);
        say("ibp7s0");
        let asked = networkd::Networkd.asked(&root);
        assert!(asked.contains(&("lo".to_owned(), format!("{dir}/00-ib.network"))), "{asked:?}");
    });
}

#[test]
fn ifupdown_writes_its_mtu_and_what_commands_echo() {
    let text = "auto ib0\niface ib0 inet static\n  address 10.0.0.1/24\n  mtu 65520\n  pre-up echo connected > /sys/class/net/$IFACE/mode || true\niface ib1 inet dhcp\n  mtu 2000\n  pre-up echo datagram > /sys/class/net/ib1/mode\n";
    let with = |text| written(&["networking.service"], &[("/etc/network/interfaces", text)]);
    expect![[r#"
        ifupdown: pre-up in /etc/network/interfaces says connected
        ifupdown: mtu in /etc/network/interfaces says 65520
    "#]]
    .assert_eq(&with(text));
    let others = "iface ib0 inet dhcp\n  up echo connected > /tmp/x; echo datagram > /sys/class/net/ib0/mode\n  up logger echo connected > /sys/class/net/ib0/mode\nmtu\n";
    assert_eq!(with(others), "", "other commands are not understood, and not guessed at");
}
