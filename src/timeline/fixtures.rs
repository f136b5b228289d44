//! Boots to draw in tests.

use std::time::Duration;

use super::{Ask, Clock, ModuleLoad, Note, Outcome, PortTrack, Role, Timeline, UnitBar};
use crate::names::Rung;

const S: Duration = Duration::from_secs(1);

const fn msec(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn unit(
    name: &str,
    role: Role,
    from: Option<Duration>,
    to: Option<Duration>,
    outcome: Outcome,
) -> UnitBar {
    UnitBar { name: name.to_owned(), role, began: from, ended: to, outcome }
}

fn module(name: &str, at: Duration, remark: &str) -> ModuleLoad {
    ModuleLoad { name: name.to_owned(), at, remark: remark.to_owned() }
}

fn wall(hour: u64, minute: u64, second: u64, date: &str) -> Clock {
    Clock::Wall {
        since_midnight: Duration::from_secs(hour * 3600 + minute * 60 + second),
        date: date.to_owned(),
    }
}

/// The boot after which ib0 stayed down for four days: openibd disabled,
/// ib_ipoib loaded 80 s after the network service asked.
pub(crate) fn seed_failing() -> Timeline {
    // Mar 18 10:29:41 is zero; Mar 22 16:56:38 the manual ifup.
    let by_hand = (4 * 86_400 + 6 * 3600 + 26 * 60 + 57) * S;
    Timeline {
        title: "node-9.domain.tld, boot of Mar 18 10:29:41".to_owned(),
        clock: wall(10, 29, 41, "Mar 18"),
        units: vec![
            unit("openibd.service", Role::Provider, None, None, Outcome::NeverRan),
            unit("network.service", Role::Network, Some(11 * S), Some(13 * S), Outcome::Failed),
            unit(
                "mlnx_interface_mgr@ib0.service",
                Role::Network,
                Some(93 * S),
                Some(93 * S),
                Outcome::Good,
            ),
        ],
        asks: vec![Ask {
            who: "network.service".to_owned(),
            netdev: "ib0".to_owned(),
            at: 12 * S,
            found: Some(false),
        }],
        modules: vec![
            module("mlx5_core", 2 * S, "udev"),
            module("ib_ipoib", 92 * S, "80 s after network.service asked for ib0"),
        ],
        ports: vec![PortTrack {
            label: "0000:4b:00.0".to_owned(),
            netdev: Some("ib0".to_owned()),
            reached: vec![
                (Rung::Pci, Duration::ZERO),
                (Rung::Driver, 2 * S),
                (Rung::Netdev, 92 * S),
            ],
            up: Some(by_hand),
            declined: Some(93 * S),
            ..PortTrack::default()
        }],
        finding: None,
        notes: vec![
            Note {
                at: 12 * S,
                text: "network: Device ib0 does not seem to be present, delaying initialization."
                    .to_owned(),
            },
            Note {
                at: 93 * S,
                text: "mlnx_interface_mgr: OS is booting, will not run ifup on ib0".to_owned(),
            },
            Note { at: by_hand, text: "network: Bringing up interface ib0: [ OK ]".to_owned() },
        ],
    }
}

/// The same host with openibd enabled.
pub(crate) fn seed_good() -> Timeline {
    Timeline {
        title: "node-9.domain.tld, boot of Apr 02 11:09:27".to_owned(),
        clock: wall(11, 9, 27, "Apr 02"),
        units: vec![
            unit("openibd.service", Role::Provider, Some(6 * S), Some(8 * S), Outcome::Good),
            unit("network.service", Role::Network, Some(14 * S), Some(16 * S), Outcome::Good),
        ],
        asks: vec![Ask {
            who: "network.service".to_owned(),
            netdev: "ib0".to_owned(),
            at: 16 * S,
            found: Some(true),
        }],
        modules: vec![module("mlx5_core", S, "udev"), module("ib_ipoib", 7 * S, "openibd")],
        ports: vec![PortTrack {
            label: "0000:4b:00.0".to_owned(),
            netdev: Some("ib0".to_owned()),
            reached: vec![(Rung::Pci, Duration::ZERO), (Rung::Driver, S), (Rung::Netdev, 7 * S)],
            up: Some(16 * S),
            ..PortTrack::default()
        }],
        finding: None,
        notes: Vec::new(),
    }
}

/// `n` ports of a live boot; each eighth comes too late or never.
pub(crate) fn many(n: u64) -> Timeline {
    let port = |i: u64| {
        let slow = if i % 8 == 5 { 9 * S } else { Duration::ZERO };
        let mut reached = vec![
            (Rung::Pci, S / 2 + msec(i)),
            (Rung::Driver, 2 * S + msec(i * 20)),
            (Rung::Rdma, 3 * S + msec(i * 30) + slow / 2),
        ];
        if i % 8 != 7 {
            reached.push((Rung::Netdev, 3 * S + msec(i * 35) + slow));
            reached.push((Rung::Named, 3 * S + msec(i * 40) + slow));
            reached.push((Rung::Active, 4 * S + msec(i * 60) + slow));
        }
        PortTrack {
            label: format!("mlx5_{i} port 1 (0000:{:02x}:00.{})", i / 8 + 16, i % 8),
            netdev: Some(format!("ib{i}")),
            missing: (i % 8 == 7).then_some(Rung::Netdev),
            why: if i % 8 == 7 { "ipoib_intf_alloc failed".to_owned() } else { String::new() },
            up: (i % 8 != 7).then_some(8 * S + slow),
            reached,
            ..PortTrack::default()
        }
    };
    let ask = |i: u64| Ask {
        who: "networking.service".to_owned(),
        netdev: format!("ib{i}"),
        at: 7 * S + msec(2 * i),
        found: None,
    };
    Timeline {
        title: format!("bed, {n} ports"),
        clock: Clock::SinceBoot,
        units: vec![
            unit("ibprov.service", Role::Provider, Some(S), Some(6 * S), Outcome::Good),
            unit("networking.service", Role::Network, Some(6 * S), Some(9 * S), Outcome::Good),
            unit("scratch.mount", Role::Mount, Some(10 * S), Some(11 * S), Outcome::Failed),
            unit("vm: node1", Role::Guest, Some(12 * S), None, Outcome::Unknown),
        ],
        asks: (0..n).map(ask).collect(),
        modules: vec![
            module("mlx5_core", 2 * S, "udev"),
            module("mlx5_ib", 3 * S, "udev"),
            module("ib_ipoib", Duration::from_millis(3_200), "ibprov.service"),
        ],
        ports: (0..n).map(port).collect(),
        finding: None,
        notes: Vec::new(),
    }
}

/// Names that try to break out of XML and of a terminal.
pub(crate) fn hostile() -> Timeline {
    let mut timeline = seed_failing();
    let bad = "</text><script>alert('x')</script>\x1b[2J\u{202e}&amp;\"\u{0}";
    timeline.title = bad.to_owned();
    timeline.ports[0].label = bad.repeat(30);
    timeline.ports[0].netdev = Some(bad.to_owned());
    timeline.ports[0].why = bad.to_owned();
    timeline.asks[0].netdev = bad.to_owned();
    timeline.asks[0].who = bad.to_owned();
    timeline.units[0].name = bad.to_owned();
    timeline.modules[0].remark = bad.to_owned();
    timeline.notes[0].text = bad.repeat(20);
    timeline
}
