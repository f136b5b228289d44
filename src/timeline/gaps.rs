//! Where somebody asked for an interface that was not there, and for how long
//! it was missing: what the picture shows in red.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Ask, PortTrack, Timeline};
use crate::check::evidence::relevance::came_too_late;
use crate::model::duration::duration;
use crate::names::Rung;

/// A span in which an interface that somebody had asked for was of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Index into [`Timeline::ports`]; none if no port has that netdev.
    pub port: Option<usize>,
    /// The netdev, or the port's label where it never had one.
    pub netdev: String,
    pub kind: GapKind,
    /// Who asked first; empty if nobody is known to have asked.
    pub who: String,
    pub from: Duration,
    /// When it ended; none if it never did.
    pub until: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapKind {
    /// The netdev was not there yet.
    Missing,
    /// It was there, and nobody set it up any more.
    Down,
}

impl Gap {
    /// True if this ask fell into it.
    pub fn covers(&self, ask: &Ask) -> bool {
        self.netdev == ask.netdev
            && ask.found != Some(true)
            && ask.at >= self.from
            && self.until.is_none_or(|until| ask.at <= until)
    }

    pub fn sentence(&self) -> String {
        let span = self.until.map(|until| duration(until.saturating_sub(self.from)));
        let Self { netdev, who, .. } = self;
        match (self.kind, span) {
            (GapKind::Missing, Some(span)) => {
                format!("{netdev} appeared {span} after {who} asked for it")
            }
            (GapKind::Missing, None) if who.is_empty() => format!("{netdev} never came up"),
            (GapKind::Missing, None) => format!("{netdev} did not appear; {who} asked for it"),
            (GapKind::Down, Some(span)) => format!("{netdev} then stayed down for {span}"),
            (GapKind::Down, None) => {
                format!("{netdev} then stayed down because no service configured it")
            }
        }
    }
}

impl Timeline {
    /// All gaps, ports in order. One per port and kind: the earliest asker is named.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut first: BTreeMap<&str, &Ask> = BTreeMap::new();
        for ask in &self.asks {
            let asked = first.entry(ask.netdev.as_str()).or_insert(ask);
            // One who says that it was not there counts before one who says nothing.
            if (ask.found != Some(false), ask.at) < (asked.found != Some(false), asked.at) {
                *asked = ask;
            }
        }
        for (index, port) in self.ports.iter().enumerate() {
            let ask = port.netdev.as_deref().and_then(|netdev| first.remove(netdev));
            gaps.extend(gaps_of(index, port, ask));
        }
        // Asked for, and no port is known to have it.
        gaps.extend(first.into_values().filter(|a| a.found == Some(false)).map(|ask| Gap {
            port: None,
            netdev: ask.netdev.clone(),
            kind: GapKind::Missing,
            who: ask.who.clone(),
            from: ask.at,
            until: None,
        }));
        gaps
    }

    /// The sentence above the picture, and whether it is a bad one; none if
    /// nothing is known either way.
    pub fn headline(&self) -> Option<(bool, String)> {
        let gaps = self.gaps();
        if let Some(worst) = worst(&gaps) {
            let mut text = worst.sentence();
            let same = |g: &&Gap| g.netdev == worst.netdev && g.kind > worst.kind;
            if let Some(down) = gaps.iter().find(same) {
                text = match down.until {
                    Some(until) => format!(
                        "{text}, and stayed down {} longer because no service configured it",
                        duration(until.saturating_sub(down.from))
                    ),
                    None => format!("{text}, and stayed down because no service configured it"),
                };
            }
            let mut others: Vec<&str> =
                gaps.iter().map(|g| g.netdev.as_str()).filter(|n| *n != worst.netdev).collect();
            others.dedup();
            match others.len() {
                0 => {}
                1 => text.push_str("; one more port is late or missing"),
                n => text.push_str(&format!("; {n} more ports are late or missing")),
            }
            return Some((true, text));
        }
        if let Some((true, fault)) = &self.finding {
            return Some((true, fault.clone()));
        }
        let answered = |p: &&PortTrack| {
            p.when(Rung::Netdev).is_some()
                && self.asks.iter().any(|a| p.netdev.as_deref() == Some(a.netdev.as_str()))
        };
        let good = self.ports.iter().filter(answered).count();
        match good {
            0 => self.finding.clone(),
            1 => Some((false, "the netdev existed before any service asked for it".to_owned())),
            n => {
                Some((false, format!("all {n} netdevs existed before any service asked for them")))
            }
        }
    }
}

/// The gap to name first: one that never ended, then the longest.
fn worst(gaps: &[Gap]) -> Option<&Gap> {
    gaps.iter().filter(|g| g.kind == GapKind::Missing).max_by_key(|g| {
        let span = g.until.map(|until| until.saturating_sub(g.from));
        (!g.who.is_empty(), span.is_none(), span, std::cmp::Reverse(g.port))
    })
}

fn gaps_of(index: usize, port: &PortTrack, ask: Option<&Ask>) -> Vec<Gap> {
    let there = port.when(Rung::Netdev);
    let gap = |kind, who: &str, from, until| Gap {
        port: Some(index),
        netdev: port.netdev.clone().unwrap_or_else(|| port.label.clone()),
        kind,
        who: who.to_owned(),
        from,
        until,
    };
    let Some(ask) = ask else {
        // Nobody is known to have asked: still red if it never got anywhere.
        let stuck = port.missing.is_some_and(|rung| rung <= Rung::Named);
        let since = port.reached.iter().map(|(_, at)| *at).max().unwrap_or_default();
        return if stuck { vec![gap(GapKind::Missing, "", since, None)] } else { Vec::new() };
    };
    let missed = match there {
        Some(there) => came_too_late(ask.found, there.cmp(&ask.at)),
        None => ask.found != Some(true),
    };
    if !missed {
        return Vec::new();
    }
    // A log of whole seconds can have both in the same one.
    let mut gaps = vec![gap(GapKind::Missing, &ask.who, ask.at, there.map(|t| t.max(ask.at)))];
    if let Some(there) = there {
        let late = port.up.is_none_or(|up| up > there);
        // Without a word from anybody it is not known that it stayed down.
        let known = port.up.is_some() || port.declined.is_some() || port.still_down;
        if late && known {
            gaps.push(gap(GapKind::Down, &ask.who, there.max(ask.at), port.up));
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn the_late_netdev_and_the_four_days_are_seen() {
        let timeline = fixtures::seed_failing();
        assert_eq!(
            timeline.headline(),
            Some((
                true,
                "ib0 appeared 80 s after network.service asked for it, and stayed down 4 d 6 h longer because no service configured it".to_owned()
            ))
        );
        let kinds: Vec<GapKind> = timeline.gaps().iter().map(|g| g.kind).collect();
        assert_eq!(kinds, [GapKind::Missing, GapKind::Down]);
    }

    #[test]
    fn a_good_boot_has_no_gap() {
        let timeline = fixtures::seed_good();
        assert_eq!(timeline.gaps(), []);
        assert_eq!(
            timeline.headline(),
            Some((false, "the netdev existed before any service asked for it".to_owned()))
        );
    }

    #[test]
    fn what_never_came_is_worse_than_what_came_late() {
        let mut timeline = fixtures::many(10);
        let (bad, text) = timeline.headline().expect("headline");
        assert!(bad && text.starts_with("ib7 did not appear; networking.service asked"), "{text}");
        timeline.asks.clear();
        let (_, text) = timeline.headline().expect("headline");
        assert_eq!(text, "ib7 never came up");
    }

    #[test]
    fn a_netdev_that_no_port_has_is_a_gap_if_the_asker_says_so() {
        let ask = |found| Ask {
            who: "net".into(),
            netdev: "ib9".into(),
            at: Duration::from_micros(5),
            found,
        };
        let timeline = Timeline { asks: vec![ask(None)], ..Timeline::default() };
        assert_eq!(timeline.gaps(), []);
        assert_eq!(timeline.headline(), None);
        let timeline = Timeline { asks: vec![ask(None), ask(Some(false))], ..Timeline::default() };
        assert_eq!(
            timeline.headline(),
            Some((true, "ib9 did not appear; net asked for it".to_owned()))
        );
    }

    #[test]
    fn a_netdev_that_is_down_to_this_day_is_told() {
        let mut timeline = fixtures::seed_failing();
        let port = &mut timeline.ports[0];
        (port.up, port.declined) = (None, None);
        assert_eq!(timeline.gaps().len(), 1);
        timeline.ports[0].still_down = true;
        let (_, headline) = timeline.headline().expect("headline");
        assert!(
            headline.ends_with("and stayed down because no service configured it"),
            "{headline}"
        );
    }

    #[test]
    fn the_same_second_is_no_gap_unless_the_asker_says_so() {
        let port = PortTrack {
            netdev: Some("ib0".to_owned()),
            reached: vec![(Rung::Netdev, Duration::from_micros(5))],
            ..PortTrack::default()
        };
        let ask = |found| Ask {
            who: "net".into(),
            netdev: "ib0".into(),
            at: Duration::from_micros(5),
            found,
        };
        assert_eq!(gaps_of(0, &port, Some(&ask(None))), []);
        assert_eq!(gaps_of(0, &port, Some(&ask(Some(true)))), []);
        assert_eq!(gaps_of(0, &port, Some(&ask(Some(false)))).len(), 1);
    }
}
