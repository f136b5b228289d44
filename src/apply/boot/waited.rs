//! Who is waited for, since when, and how far each was seen to come; and what a boot says of that
//! meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use super::interfaces::Interfaces;
use crate::ladder::{KernelLogFacts, cause};
use crate::model::{
    Awaited, PortProgress,
    boot::{Climbed, TimelineEntry},
};
use crate::names::{Moment, PortNumber, Rung};
use crate::observe::Observed;

/// The ports of one boot.
#[derive(Debug, Default)]
pub(super) struct Waited {
    /// When each was first waited for.
    since: BTreeMap<Awaited, Moment>,
    /// The rung each port was last seen at.
    seen: BTreeMap<(Awaited, Option<PortNumber>), Option<Rung>>,
    timeline: Vec<TimelineEntry>,
}

impl Waited {
    /// Write down each rung a port has reached, when it is seen there. Gives the
    /// ports that have become ready.
    pub(super) fn note<'p>(
        &mut self,
        ports: &'p [PortProgress],
        interfaces: &Interfaces,
        now: Moment,
    ) -> Vec<&'p PortProgress> {
        let mut ready = Vec::new();
        for port in ports {
            self.since.entry(port.awaited()).or_insert(now);
            let before = self.seen.insert((port.awaited(), port.port), port.reached);
            if before == Some(port.reached) {
                continue;
            }
            let Some(rung) = port.reached else { continue };
            let usec = match rung {
                Rung::Named => port.named_usec.unwrap_or(now),
                // When the settings were made first is not known, if boot did not wait.
                Rung::Configured if !interfaces.has_waited(port) => port.named_usec.unwrap_or(now),
                _ => now,
            };
            let there = if before.is_none() { " (when first seen)" } else { "" };
            let text = format!("{}{there}", standing(port, rung));
            let (expected, port_number) = (port.expected.clone(), port.port);
            let climbed = Some(Climbed { expected, port: port_number, rung });
            self.timeline.push(TimelineEntry { usec, text, climbed });
            if port.is_ready() && !port.is_ethernet() {
                ready.push(port);
            }
        }
        ready
    }

    /// Since when `port` is waited for.
    pub(super) fn since(&self, port: &PortProgress, now: Moment) -> Moment {
        self.since.get(&port.awaited()).copied().unwrap_or(now)
    }

    /// When the first of the ports that can still come has had its time; `None` if
    /// all are ready, blocked or out of time.
    pub(super) fn next_deadline(
        &self,
        ports: &[PortProgress],
        is_blocked: impl Fn(&PortProgress) -> bool,
        per_hca: Duration,
        now: Moment,
    ) -> Option<Moment> {
        let missing = ports.iter().filter(|p| !p.is_ready());
        let until = |p: &PortProgress| self.since(p, now) + per_hca;
        missing.filter(|p| until(p) > now && !is_blocked(p)).map(until).min()
    }

    /// systemd's status line: how many ports are ready, and what is waited for most: a port, or,
    /// with all of them ready, what `work` says.
    pub(super) fn status(
        &self,
        ports: &[PortProgress],
        work: Option<&str>,
        (observed, facts): (&Observed, &KernelLogFacts),
        now: Moment,
    ) -> String {
        let waited: Vec<&PortProgress> = ports.iter().filter(|p| !p.is_ethernet()).collect();
        let ready = waited.iter().filter(|p| p.is_ready()).count();
        let line = format!("{ready} of {} ports", waited.len());
        let says_why = |p: &PortProgress| {
            let log = p.pci.and_then(|pci| facts.functions.get(&pci));
            log.is_some_and(|l| l.firmware_wait.is_some())
        };
        // A card that waits for firmware may be what the others wait for: its
        // driver's module is not through before it is.
        let missing = waited.iter().filter(|p| !p.is_ready());
        match (missing.min_by_key(|p| (!says_why(p), self.since(p, now))), work) {
            (Some(port), _) => {
                let why = cause::cause(port, observed, facts).map(|c| c.text).unwrap_or_default();
                let seconds = now.since(self.since(port, now)).as_secs();
                format!("{line}: waiting for {}: {why}, {seconds} s", port.label())
            }
            (None, Some(work)) => format!("{line}: {work}"),
            (None, None) => line,
        }
    }

    /// What happened when, in that order.
    pub(super) fn into_timeline(mut self) -> Vec<TimelineEntry> {
        self.timeline.sort_by_key(|entry| entry.usec);
        self.timeline
    }
}

/// `mlx5_0/1 (0000:4b:00.0): named as ib0`
pub(super) fn standing(port: &PortProgress, rung: Rung) -> String {
    let netdev = port.netdev.as_ref().map(|n| format!(" as {n}")).unwrap_or_default();
    format!("{}: {rung}{netdev}", port.label())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, AtLeast, Config};
    use crate::ladder::{expect, progress};
    use crate::names::at;
    use crate::observe::ModprobeRules;

    const HERE: &str = "0000:4b:00.0";

    fn port(reached: Rung) -> PortProgress {
        let mut port = PortProgress::absent(HERE.to_owned(), Rung::Named, String::new());
        port.reached = Some(reached);
        port
    }

    fn noted(looks: &[(Rung, Moment)]) -> (Waited, usize) {
        let mut waited = Waited::default();
        let mut ready = 0;
        for (rung, now) in looks {
            ready += waited.note(&[port(*rung)], &Interfaces::default(), *now).len();
        }
        (waited, ready)
    }

    #[test]
    fn a_rung_is_noted_when_it_is_first_seen_and_readiness_told_once() {
        let looks = [
            (Rung::Rdma, at(10)),
            (Rung::Rdma, at(20)),
            (Rung::Named, at(30)),
            (Rung::Named, at(40)),
        ];
        let (waited, ready) = noted(&looks);
        let timeline = waited.into_timeline();
        let told: Vec<_> = timeline.iter().map(|m| (m.usec, m.text.as_str())).collect();
        let here = |what| format!("{HERE}: {what}");
        let (first, second) = (here("rdma (when first seen)"), here("named"));
        assert_eq!(told, [(at(10), first.as_str()), (at(30), second.as_str())]);
        assert_eq!(ready, 1);
    }

    #[test]
    fn a_port_is_waited_for_until_its_time_is_over_or_it_cannot_come() {
        let (waited, _) = noted(&[(Rung::Rdma, at(10)), (Rung::Rdma, at(20))]);
        let next = |reached, blocked: bool, now| {
            waited.next_deadline(&[port(reached)], |_| blocked, Duration::from_micros(100), now)
        };
        assert_eq!(next(Rung::Rdma, false, at(50)), Some(at(110)));
        assert_eq!(next(Rung::Rdma, true, at(50)), None);
        assert_eq!(next(Rung::Rdma, false, at(110)), None);
        assert_eq!(next(Rung::Named, false, at(50)), None);
    }

    const SECOND: &str = "0000:4b:00.1";

    fn port_of(pci: &str, reached: Rung) -> PortProgress {
        let mut port = PortProgress::absent(pci.to_owned(), Rung::Named, String::new());
        port.pci = pci.parse().ok();
        port.reached = Some(reached);
        port
    }

    fn shown(ports: &[PortProgress], work: Option<&str>, facts: &KernelLogFacts) -> String {
        let since = [(HERE, at(1_000_000)), (SECOND, at(2_000_000))];
        let since = since.map(|(port, since)| (Awaited::Port(port.into()), since)).into();
        let waited = Waited { since, ..Waited::default() };
        waited.status(ports, work, (&Observed::default(), facts), at(9_500_000))
    }

    #[test]
    fn the_port_that_waits_longest_is_named_or_one_that_waits_for_firmware() {
        let ports = [port_of(SECOND, Rung::Pci), port_of(HERE, Rung::Pci)];
        let mut facts = KernelLogFacts::default();
        let why = "no driver is bound to the function";
        let of = |pci, seconds| format!("0 of 2 ports: waiting for {pci}: {why}, {seconds} s");
        assert_eq!(shown(&ports, None, &facts), of(HERE, 8));
        cause::learn(&mut facts, 4, &format!("mlx5_core {SECOND}: Waiting for FW initialization"));
        assert_eq!(shown(&ports, None, &facts), of(SECOND, 7));
    }

    /// A port that appears is no reason to wait for the others as long again.
    #[test]
    fn those_of_at_least_are_waited_for_since_the_first_look_however_many_are_missing() {
        let mut waited = Waited::default();
        let mut missing = |ports: usize, now: Moment| {
            let config = Config {
                boot: config::Boot {
                    at_least: Some(AtLeast { ports, origin: "/etc/x.toml:1:1".to_owned() }),
                    ..Config::default().boot
                },
                ..Config::default()
            };
            let observed = Observed::default();
            let wanted = expect::expectation(&config, &observed, &ModprobeRules::default(), None);
            let ports = progress::progress(&wanted.of_boot(), &observed);
            waited.note(&ports, &Interfaces::default(), now);
            (
                ports[0].expected.to_string(),
                waited.next_deadline(&ports, |_| false, Duration::from_micros(100), now),
            )
        };
        assert_eq!(missing(2, at(10)), ("2 more ports".to_owned(), Some(at(110))));
        assert_eq!(missing(1, at(100)), ("1 more port".to_owned(), Some(at(110))));
    }

    #[test]
    fn with_all_ports_ready_the_work_is_named() {
        let ports = [port_of(HERE, Rung::Named)];
        let facts = KernelLogFacts::default();
        assert_eq!(
            shown(&ports, Some("waiting for modprobe"), &facts),
            "1 of 1 ports: waiting for modprobe"
        );
        assert_eq!(shown(&ports, None, &facts), "1 of 1 ports");
    }
}
