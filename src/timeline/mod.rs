//! The boot as a picture: what happened when, and where somebody asked for an
//! interface that was not there yet.
//!
//! Plain values ([`Timeline`]), filled from a boot report ([`report`]) or from
//! evidence, and drawn as SVG ([`svg`]). Pure:
//! nothing here reads a file or a clock. Names in it are hostile until they
//! went through [`clean`], which the drawing does for every text.

pub mod evidence;
pub mod gaps;
pub mod report;
pub mod scale;
pub mod svg;
pub use gaps::{Gap, GapKind};
pub use scale::Clock;

use std::time::Duration;

use crate::names::Rung;

/// A boot. All times are microseconds since [`Timeline::clock`]'s zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    /// What boot of what host this is.
    pub title: String,
    pub clock: Clock,
    /// Services, targets, mounts and guests.
    pub units: Vec<UnitBar>,
    /// Who asked for which netdev, and when.
    pub asks: Vec<Ask>,
    /// Modules, in the order they were loaded.
    pub modules: Vec<ModuleLoad>,
    /// Ports and VFs, each with its way up the ladder.
    pub ports: Vec<PortTrack>,
    /// What was said at one moment and matters for the story.
    pub notes: Vec<Note>,
    /// What is said first, whether or not it can be drawn, and whether something is wrong.
    pub finding: Option<(bool, String)>,
}

/// A unit, a guest or a program that ran for some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitBar {
    pub name: String,
    /// What it is to the InfiniBand ports.
    pub role: Role,
    /// When it began to start; none if it never did.
    pub began: Option<Duration>,
    /// When it was up, or had failed.
    pub ended: Option<Duration>,
    pub outcome: Outcome,
}

impl UnitBar {
    /// Of a unit of whose start nothing is known.
    const fn new(name: String, role: Role) -> Self {
        Self { name, role, began: None, ended: None, outcome: Outcome::Unknown }
    }
}

/// What a unit is to the ports, in the order they are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Role {
    /// Brings the ports up: ibprov, openibd, rdma-load-modules.
    Provider,
    Network,
    /// Waits until the network is there.
    Online,
    /// A file system over the network.
    Mount,
    Guest,
    /// Anything else that needs a port.
    Consumer,
}

impl Role {
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// What came of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Good,
    Failed,
    /// It never ran: disabled, masked, condition, or its job was dropped.
    NeverRan,
    /// It had not ended, or nothing says how it did.
    Unknown,
}

/// Somebody asked for a netdev.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Who: `network.service`.
    pub who: String,
    pub netdev: String,
    pub at: Duration,
    /// Whether it was found, if the asker said so.
    pub found: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleLoad {
    pub name: String,
    /// When it was there.
    pub at: Duration,
    /// By whom, where that is known.
    pub remark: String,
}

/// A port's way up the ladder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortTrack {
    /// What to call it: `mlx5_0/1 (0000:4b:00.0)`.
    pub label: String,
    pub netdev: Option<String>,
    /// The rungs it reached, each with the time it was first seen there.
    /// Rungs that were passed unseen are left out.
    pub reached: Vec<(Rung, Duration)>,
    /// The state of its link now, where the host was looked at: active, polling.
    pub now: Option<String>,
    /// The first missing rung of those that were asked of it.
    pub missing: Option<Rung>,
    pub why: String,
    /// When the netdev was set up by the network stack or by hand.
    pub up: Option<Duration>,
    /// When its netdev was first known to have an address.
    pub address: Option<Duration>,
    /// When somebody who could have set it up declined to.
    pub declined: Option<Duration>,
    /// The host was looked at, and the netdev is down although it is asked for.
    pub still_down: bool,
}

impl PortTrack {
    /// When it first was on `rung` or above.
    pub fn when(&self, rung: Rung) -> Option<Duration> {
        self.reached.iter().filter(|(r, _)| *r >= rung).map(|(_, at)| *at).min()
    }

    pub fn highest(&self) -> Option<Rung> {
        self.reached.iter().map(|(rung, _)| *rung).max()
    }

    /// The rungs in the order of time, each higher than the one before.
    pub fn steps(&self) -> Vec<(Rung, Duration)> {
        let mut sorted = self.reached.clone();
        sorted.sort_by_key(|(rung, at)| (*at, *rung));
        let mut steps: Vec<(Rung, Duration)> = Vec::new();
        for (rung, at) in sorted {
            match steps.last_mut() {
                Some((last, _)) if *last >= rung => {}
                Some((last, since)) if *since == at => *last = rung,
                _ => steps.push((rung, at)),
            }
        }
        steps
    }
}

/// Something that was said at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub at: Duration,
    /// By whom, and what.
    pub text: String,
}

impl Timeline {
    /// All moments that the picture must show, in order, each once.
    pub fn moments(&self) -> Vec<Duration> {
        let mut all: Vec<Duration> = Vec::new();
        for unit in &self.units {
            all.extend(unit.began.iter().chain(&unit.ended));
        }
        for port in &self.ports {
            all.extend(port.reached.iter().map(|(_, at)| at));
            all.extend(port.up.iter().chain(&port.declined).chain(&port.address));
        }
        all.extend(self.asks.iter().map(|a| a.at));
        all.extend(self.modules.iter().map(|m| m.at));
        all.extend(self.notes.iter().map(|n| n.at));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The units in the order in which they are drawn; who asked for a netdev and is no known unit
    /// is one.
    pub fn rows(&self) -> Vec<UnitBar> {
        let mut units = self.units.clone();
        for ask in &self.asks {
            if !units.iter().any(|u| u.name == ask.who) {
                units.push(UnitBar {
                    name: ask.who.clone(),
                    role: Role::Consumer,
                    began: Some(ask.at),
                    ended: None,
                    outcome: Outcome::Unknown,
                });
            }
        }
        units.sort_by_key(|u| (u.role, u.began));
        units
    }

    /// The port that has this netdev.
    pub fn port_of(&self, netdev: &str) -> Option<&PortTrack> {
        self.ports.iter().find(|p| p.netdev.as_deref() == Some(netdev))
    }
}

#[cfg(test)]
pub(crate) mod fixtures;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rung_seen_late_counts_for_those_below_it() {
        let s = Duration::from_secs;
        let port = PortTrack {
            reached: vec![
                (Rung::Pci, s(5)),
                (Rung::Named, s(90)),
                (Rung::Netdev, s(90)),
                (Rung::Rdma, s(95)),
            ],
            ..PortTrack::default()
        };
        assert_eq!(port.when(Rung::Driver), Some(s(90)));
        assert_eq!(port.when(Rung::Active), None);
        assert_eq!(port.steps(), [(Rung::Pci, s(5)), (Rung::Named, s(90))]);
        assert_eq!(port.highest(), Some(Rung::Named));
    }
}
