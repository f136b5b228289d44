//! The picture of a boot from evidence: log lines, and the host itself where it
//! was looked at.

mod roles;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use self::roles::{known, role_of};
use super::report::{loaded, ran, reached};
use super::{Ask, Clock, ModuleLoad, Note, Outcome, PortTrack, Role, Timeline, UnitBar};
use crate::check::evidence::own::About;
use crate::check::evidence::relevance::not_found;
use crate::check::evidence::state::PortSeen;
use crate::check::evidence::{Boot, Event, Host, Kind, When, event};
use crate::check::pattern::word;
use crate::check::rules::ib_netdev_in;
use crate::graph::{Unit, consumers};
use crate::model::{BootReport, Code, Finding, Quote, Severity, duration::duration};
use crate::names::{Moment, Object, Rung, is_kernel_ipoib_name, is_rdma_module, may_be_ipoib_name};
use crate::stacks::KNOWN;

/// Asks of one asker for one netdev that are closer than this are one.
const SAME_ASK: Duration = Duration::from_secs(3);
/// Notes: the lines that findings rest on, at most so many.
const NOTES: usize = 8;

/// The picture of `boot`; `findings` say which lines matter.
pub fn timeline(boot: &Boot, findings: &[Finding]) -> Timeline {
    let zero = Zero::of(boot);
    // Without times there is nothing to draw.
    let reported =
        boot.accounts.boot.as_deref().filter(|report| report.finished_usec > Moment::START);
    let mut drawing = Drawing {
        timeline: Timeline { title: title(boot), clock: zero.clock(), ..Timeline::default() },
        functions: Vec::new(),
        netdevs: Vec::new(),
        units: BTreeMap::new(),
    };
    for event in &boot.events {
        if let Some(at) = zero.at(&event.when) {
            drawing.event(event, at);
        }
    }
    drawing.consumers(boot, findings, &zero);
    drawing.ports();
    // systemd's times and ibprov's are CLOCK_MONOTONIC; a log without that
    // clock cannot be laid beside them.
    if let (Zero::Monotonic, Some(host)) = (&zero, &boot.host) {
        drawing.host(host, reported, &boot.state.ports);
    }
    drawing.finish(boot, findings, &zero)
}

/// What the times of a boot are counted from.
enum Zero {
    Monotonic,
    /// Microseconds since 1970 of the first line, and its date as written.
    Wall(u64, String),
}

impl Zero {
    fn of(boot: &Boot) -> Self {
        let monotonic = boot.events.iter().filter(|e| e.when.monotonic.is_some()).count();
        let wall = boot.events.iter().filter(|e| e.when.wall.is_some()).count();
        if monotonic >= wall {
            return Self::Monotonic;
        }
        let first = boot.events.iter().filter_map(|e| Some((e.when.wall?, &e.when.stamp))).min();
        first.map_or(Self::Monotonic, |(wall, stamp)| Self::Wall(wall, date(stamp)))
    }

    fn at(&self, when: &When) -> Option<Duration> {
        match self {
            Self::Monotonic => when.monotonic.map(|at| at.since(Moment::START)),
            Self::Wall(zero, _) => when.wall?.checked_sub(*zero).map(Duration::from_micros),
        }
    }

    fn clock(&self) -> Clock {
        match self {
            Self::Monotonic => Clock::SinceBoot,
            Self::Wall(zero, date) => {
                let since_midnight = Duration::from_micros(zero % 86_400_000_000);
                Clock::Wall { since_midnight, date: date.clone() }
            }
        }
    }
}

/// The date of a time as logs write it: what stands before the first word with
/// a colon in it (`Mar 18 10:29:41`, `2026-03-18T10:29:41`).
fn date(stamp: &str) -> String {
    let words: Vec<&str> = stamp.split(' ').take_while(|word| !word.contains(':')).collect();
    match stamp.split_once('T') {
        Some((date, _)) if words.is_empty() => date.to_owned(),
        _ => words.join(" "),
    }
}

fn title(boot: &Boot) -> String {
    let source = boot.names.first().map_or("", String::as_str);
    match (source, boot.begins.as_str(), &boot.id) {
        ("", "", _) => "boot".to_owned(),
        ("", begins, _) => format!("boot of {begins}"),
        (source, "", _) => source.to_owned(),
        // Seconds since the start of the kernel are no date.
        (source, begins, _) if begins.parse::<f64>().is_ok() => source.to_owned(),
        (source, begins, _) => format!("{source}, boot of {begins}"),
    }
}

/// A PCI function as the log shows it.
#[derive(Default)]
struct Function {
    address: String,
    /// By class or RDMA messages; Ethernet ports of the same driver are not.
    infiniband: bool,
    reached: Vec<(Rung, Duration)>,
    made: Option<Duration>,
    named: Option<(String, Duration)>,
}

struct Drawing {
    timeline: Timeline,
    /// In the order of their netdevs.
    functions: Vec<Function>,
    /// Names of netdevs that were asked for or spoken of, each once.
    netdevs: Vec<String>,
    units: BTreeMap<String, UnitBar>,
}

impl Drawing {
    fn event(&mut self, event: &Event, at: Duration) {
        if let Some(netdev) = with_address(event) {
            self.netdev(netdev);
            self.port(netdev).address.get_or_insert(at);
        }
        match &event.kind {
            Kind::PciFunction { address, class, .. } => {
                let function = self.function(address);
                function.infiniband |=
                    ["0207", "0208", "0c06"].iter().any(|c| class.starts_with(c));
                function.reached.push((Rung::Pci, at));
            }
            Kind::DriverProbe { driver, address } => {
                self.function(address).reached.push((Rung::Driver, at));
                self.module(driver, at, "");
            }
            Kind::ProbeFailed { device, .. } => {
                self.function(device).reached.retain(|(rung, _)| *rung < Rung::Driver);
            }
            Kind::NetdevMade { address } => {
                let function = self.function(address);
                function.made.get_or_insert(at);
            }
            Kind::NetdevRenamed { from, to }
                if may_be_ipoib_name(from) || may_be_ipoib_name(to) =>
            {
                if let Some(address) = event::function(&event.text).map(str::to_owned) {
                    let function = self.function(&address);
                    function.infiniband = true;
                    function.named = Some((to.to_string(), at));
                }
            }
            Kind::LinkReady(netdev) if may_be_ipoib_name(netdev) => {
                self.netdev(netdev);
                self.port(netdev).reached.push((Rung::Active, at));
                self.set_up(netdev, at);
            }
            Kind::InterfaceAsked { name, worked } if may_be_ipoib_name(name) => {
                // It may have failed for another reason.
                let found = match worked {
                    Some(false) => not_found(event).map(|_| false),
                    other => *other,
                };
                self.ask(who(event), name, at, found);
                if *worked == Some(true) {
                    self.set_up(name, at);
                }
            }
            Kind::ModuleLoad(module) if is_rdma_module(module) => {
                let by = if event.program.starts_with("systemd") { "" } else { &event.program };
                self.module(module, at, by);
            }
            Kind::UnitStarting(name) => self.unit(event, name, at, None),
            Kind::UnitStarted(name) => self.unit(event, name, at, Some(Outcome::Good)),
            Kind::UnitFailed(name) => self.unit(event, name, at, Some(Outcome::Failed)),
            _ => self.other(event, at),
        }
    }

    fn other(&mut self, event: &Event, at: Duration) {
        let text = &*event.text;
        if let Some((_, rest)) = text.split_once("will not run ifup on ") {
            let name = word(rest).to_owned();
            self.netdev(&name);
            let port = self.port(&name);
            port.declined.get_or_insert(at);
        }
        if let Some(name) = not_found(event).filter(|n| may_be_ipoib_name(n)) {
            self.ask(who(event), name, at, Some(false));
        }
    }

    fn ask(&mut self, who: String, netdev: &str, at: Duration, found: Option<bool>) {
        self.netdev(netdev);
        let same = |a: &&mut Ask| {
            a.netdev == netdev
                && a.at.abs_diff(at) < SAME_ASK
                && (a.who == who || a.who.contains("ifup") || who.contains("ifup"))
        };
        match self.timeline.asks.iter_mut().find(same) {
            Some(ask) => {
                ask.found = found.or(ask.found);
                ask.at = ask.at.min(at);
                if ask.who.contains("ifup") {
                    ask.who = who;
                }
            }
            None => self.timeline.asks.push(Ask { who, netdev: netdev.to_owned(), at, found }),
        }
    }

    fn netdev(&mut self, name: &str) {
        if !self.netdevs.iter().any(|n| n == name) {
            self.netdevs.push(name.to_owned());
        }
    }

    fn function(&mut self, address: &str) -> &mut Function {
        let at = self.functions.iter().position(|f| f.address == address).unwrap_or_else(|| {
            self.functions.push(Function { address: address.to_owned(), ..Function::default() });
            self.functions.len() - 1
        });
        // It was found there or has just been put there.
        #[allow(clippy::indexing_slicing, reason = "see above")]
        &mut self.functions[at]
    }

    /// The track of a netdev that no function is known for yet.
    fn port(&mut self, netdev: &str) -> &mut PortTrack {
        let ports = &mut self.timeline.ports;
        let at = ports.iter().position(|p| p.netdev.as_deref() == Some(netdev));
        let at = at.unwrap_or_else(|| {
            ports.push(PortTrack {
                label: netdev.to_owned(),
                netdev: Some(netdev.to_owned()),
                ..PortTrack::default()
            });
            ports.len() - 1
        });
        #[allow(clippy::indexing_slicing, reason = "it was found or has just been put there")]
        &mut ports[at]
    }

    fn set_up(&mut self, netdev: &str, at: Duration) {
        let port = self.port(netdev);
        port.up = Some(port.up.map_or(at, |up| up.min(at)));
    }

    fn module(&mut self, name: &str, at: Duration, by: &str) {
        let modules = &mut self.timeline.modules;
        if !modules.iter().any(|m| m.name == name) {
            let remark = if by.is_empty() { String::new() } else { format!("by {by}") };
            modules.push(ModuleLoad { name: name.to_owned(), at, remark });
        }
    }

    fn unit(&mut self, event: &Event, name: &str, at: Duration, outcome: Option<Outcome>) {
        let named = if event.unit.contains('.') { &event.unit } else { name };
        let Some((name, role)) = known(named).or_else(|| known(name)) else { return };
        let bar = self.units.entry(name.clone()).or_insert_with(|| UnitBar::new(name, role));
        match outcome {
            None => {
                bar.began.get_or_insert(at);
            }
            // Only the first: what is restarted by hand is not the boot.
            Some(outcome) if bar.ended.is_none() => {
                bar.began.get_or_insert(at);
                bar.ended = Some(at);
                bar.outcome = outcome;
            }
            Some(_) => {}
        }
    }

    /// The units that failed for want of a port, and when each asked for it, as the findings
    /// tell: any unit may be one.
    fn consumers(&mut self, boot: &Boot, findings: &[Finding], zero: &Zero) {
        let failed = findings
            .iter()
            .filter(|f| matches!(f.code, Code::OrderingMissing | Code::MountBeforeIpoib))
            .filter_map(|f| match f.objects.as_slice() {
                [Object::Unit(unit)] => Some((f, unit.as_str())),
                _ => None,
            });
        for (finding, unit) in failed {
            let events: Vec<(&Event, Duration)> =
                finding.evidence.iter().filter_map(|quote| quoted(boot, quote, zero)).collect();
            let is_end =
                |(event, _): &&(&Event, Duration)| matches!(event.kind, Kind::UnitFailed(_));
            let Some((_, ended)) = events.iter().find(is_end) else { continue };
            let asked = events.iter().filter(|event| !is_end(event));
            let asked = asked.filter(|(_, at)| at <= ended);
            let Some((at, netdev)) =
                asked.filter_map(|(e, at)| Some((*at, ib_netdev_in(&e.text)?))).next()
            else {
                continue;
            };
            let role = known(unit).map_or(Role::Consumer, |(_, role)| role);
            let bar = self
                .units
                .entry(unit.to_owned())
                .or_insert_with(|| UnitBar::new(unit.to_owned(), role));
            let began = boot.events.iter().find(|event| match &event.kind {
                Kind::UnitStarting(name) => **name == *unit || *event.unit == *unit,
                _ => false,
            });
            let began = began.and_then(|event| zero.at(&event.when)).filter(|began| *began <= at);
            bar.began = bar.began.or(began).or(Some(at));
            (bar.ended, bar.outcome) = (Some(*ended), Outcome::Failed);
            self.ask(unit.to_owned(), netdev, at, Some(false));
        }
    }

    /// Put functions and netdevs together. The kernel numbers IPoIB netdevs in
    /// the order it makes them.
    fn ports(&mut self) {
        let mut functions: Vec<Function> = std::mem::take(&mut self.functions);
        functions.retain(|f| f.infiniband);
        functions.sort_by_key(|f| (f.made.is_none(), f.made));
        let mut plain: Vec<String> =
            self.netdevs.iter().filter(|n| is_kernel_ipoib_name(n)).cloned().collect();
        plain.sort_by_key(|n| (n.len(), n.clone()));
        let mut plain = plain.into_iter();
        for function in functions {
            let netdev = match &function.named {
                Some((name, _)) => Some(name.clone()),
                None => plain.next(),
            };
            let mut reached = function.reached;
            reached.extend(function.made.map(|at| (Rung::Netdev, at)));
            reached.extend(function.named.map(|(_, at)| (Rung::Named, at)));
            let known = netdev.as_deref().map(|n| self.port(n));
            match known {
                Some(port) => {
                    port.label = function.address;
                    port.reached.extend(reached);
                }
                None => self.timeline.ports.push(PortTrack {
                    label: function.address,
                    netdev,
                    reached,
                    ..PortTrack::default()
                }),
            }
        }
        // The netdev of a port is there once it is set up at the latest.
        for port in &mut self.timeline.ports {
            if let (None, Some(up)) = (port.when(Rung::Netdev), port.up) {
                port.reached.push((Rung::Netdev, up));
            }
        }
        // IPoIB netdevs are there when the module is, and not before.
        let first = self.timeline.ports.iter().filter_map(|p| p.when(Rung::Netdev)).min();
        if let Some(at) = first {
            self.module("ib_ipoib", at, "");
        }
    }

    /// Lay what systemd, udev and ibprov itself know over it.
    fn host(&mut self, host: &Host, reported: Option<&BootReport>, seen: &[PortSeen]) {
        let transaction = host.graph.transaction();
        let provider = consumers::provider(&host.graph).map(|u| u.name.clone());
        for unit in host.graph.units() {
            let role = role_of(unit, provider.as_deref());
            let in_boot = transaction.contains(unit.name.as_str());
            if let (Some(role), true) = (role, in_boot || unit.now.began_usec.is_some()) {
                self.units.insert(unit.name.clone(), bar(unit, role));
            }
        }
        for port in &host.ports {
            let progress = &port.progress;
            if progress.is_ethernet() {
                continue;
            }
            let label = progress.label().to_string();
            let netdev = progress.netdev.as_ref().map(ToString::to_string);
            let pci = progress.pci.map(|p| p.to_string());
            let tracks = &mut self.timeline.ports;
            let at = tracks.iter().position(|t| {
                netdev.is_some() && t.netdev == netdev || pci.as_deref() == Some(&t.label)
            });
            let mut track = at.map_or_else(PortTrack::default, |at| tracks.remove(at));
            track.reached.extend(reported.into_iter().flat_map(|boot| reached(boot, progress)));
            track
                .reached
                .extend(progress.named_usec.map(|at| (Rung::Named, at.since(Moment::START))));
            track.label = label;
            track.netdev = netdev.or(track.netdev);
            track.missing = progress.missing();
            let shown = progress.place().and_then(|(_, rdma, number)| {
                let number = number.to_string();
                seen.iter().find(|port| port.device == rdma.as_str() && port.port == number)
            });
            track.now = shown.map(|port| port.link().to_owned());
            let asked = |n: &String| host.asked.iter().any(|a| a.netdev == *n);
            track.still_down = port.up == Some(false) && track.netdev.as_ref().is_some_and(asked);
            track.why = port.cause.as_ref().map(|c| c.text.clone()).unwrap_or_default();
            tracks.push(track);
        }
        // A tree shows no unit that has run.
        if let Some(unit) = reported.filter(|_| !host.live).map(ran) {
            self.units.insert(unit.name.clone(), unit);
        }
        for (module, at) in reported.into_iter().flat_map(loaded) {
            self.timeline.modules.retain(|m| m.name != module.as_str());
            self.module(module.as_str(), at, "ibprov");
        }
        for asked in &host.asked {
            let began = host.graph.get(&asked.unit).and_then(|u| u.now.began_usec);
            let spoke = self.timeline.asks.iter().any(|a| a.netdev == asked.netdev);
            if let (Some(at), false) = (began, spoke) {
                self.ask(asked.unit.clone(), &asked.netdev, at.since(Moment::START), None);
            }
        }
    }

    fn finish(mut self, boot: &Boot, findings: &[Finding], zero: &Zero) -> Timeline {
        let disabled = findings.iter().any(|f| f.code == Code::OpenibdDisabled);
        if disabled {
            let openibd = "openibd.service".to_owned();
            self.units.entry(openibd.clone()).or_insert_with(|| UnitBar {
                outcome: Outcome::NeverRan,
                ..UnitBar::new(openibd, Role::Provider)
            });
        }
        let mut timeline = self.timeline;
        timeline.units = self.units.into_values().collect();
        timeline.asks.sort_by_key(|a| a.at);
        timeline.modules.sort_by_key(|m| m.at);
        timeline.notes = notes(boot, findings, zero);
        let first = findings.iter().min_by_key(|finding| finding.severity == Severity::Info);
        timeline.finding = Some(match first {
            Some(finding) => (finding.severity != Severity::Info, finding.message.clone()),
            None => (false, "nothing is known to be wrong".to_owned()),
        });
        let waits = waits(&timeline);
        timeline.notes.extend(waits);
        timeline.notes.sort_by_key(|note| note.at);
        remark_late(&mut timeline);
        timeline
    }
}

/// Say beside ib_ipoib how late it was.
fn remark_late(timeline: &mut Timeline) {
    let gaps = timeline.gaps();
    let late = gaps.iter().find(|g| g.until.is_some() && !g.who.is_empty());
    let Some((gap, until)) = late.and_then(|g| Some((g, g.until?))) else { return };
    for module in timeline.modules.iter_mut().filter(|m| m.name == "ib_ipoib") {
        if module.at > gap.from && module.at <= until {
            let span = duration(module.at - gap.from);
            module.remark = format!("{span} after {} asked for {}", gap.who, gap.netdev);
        }
    }
}

/// Between the question of each unit that failed and the port: how long it had to wait for
/// the netdev, until the port was active, when it has its LID, and until it had an address.
fn waits(timeline: &Timeline) -> Vec<Note> {
    let failed = |ask: &&Ask| {
        let is_it = |unit: &&UnitBar| unit.name == ask.who && unit.outcome == Outcome::Failed;
        ask.found == Some(false) && timeline.units.iter().find(is_it).is_some()
    };
    let told = |ask: &Ask| {
        let after = |at: Option<Duration>| at?.checked_sub(ask.at).map(duration);
        let port = timeline.port_of(&ask.netdev);
        let came = after(port.and_then(|port| port.when(Rung::Netdev)));
        let active = after(port.and_then(|port| port.when(Rung::Active)));
        let Ask { who, netdev, at, .. } = ask;
        let address = after(port.and_then(|port| port.address));
        let mut text = match (came, active) {
            (Some(came), Some(active)) => format!(
                "{who} asked for {netdev}, which appeared {came} later and was active after {active}"
            ),
            (Some(came), None) => format!("{who} asked for {netdev}, which appeared {came} later"),
            (None, Some(active)) => {
                format!("{who} asked for {netdev}, which was active {active} later")
            }
            (None, None) => format!("{who} asked for {netdev}, which did not appear"),
        };
        if let Some(address) = address {
            text.push_str(&format!(", and had an address {address} after that"));
        }
        Note { at: *at, text }
    };
    timeline.asks.iter().filter(failed).take(NOTES).map(told).collect()
}

/// The event that `quote` is of, and when it was.
fn quoted<'a>(boot: &'a Boot, quote: &Quote, zero: &Zero) -> Option<(&'a Event, Duration)> {
    let event = boot.events.iter().find(|e| {
        e.origin.line == quote.line && *e.text == *quote.text && boot.quote(e) == *quote
    })?;
    Some((event, zero.at(&event.when)?))
}

/// The lines that the findings rest on, errors first, in the order of time.
fn notes(boot: &Boot, findings: &[Finding], zero: &Zero) -> Vec<Note> {
    let mut lines = BTreeSet::new();
    let mut grave: Vec<&Finding> =
        findings.iter().filter(|f| f.severity != Severity::Info).collect();
    grave.sort_by_key(|f| f.severity);
    for quote in grave.iter().flat_map(|f| &f.evidence) {
        if let Some((event, at)) = quoted(boot, quote, zero)
            && lines.len() < NOTES
        {
            let program = if event.program.is_empty() { "kernel" } else { &event.program };
            let program = program.rsplit('/').next().unwrap_or(program);
            lines.insert((at, format!("{program}: {}", event.text)));
        }
    }
    lines.into_iter().map(|(at, text)| Note { at, text }).collect()
}

fn bar(unit: &Unit, role: Role) -> UnitBar {
    let now = &unit.now;
    let outcome = match now.active.as_str() {
        "failed" => Outcome::Failed,
        "active" | "reloading" => Outcome::Good,
        // A tree does not show it.
        "" => Outcome::Unknown,
        _ if now.began_usec.is_none() && !now.job => Outcome::NeverRan,
        // A oneshot that has done its work.
        "inactive" if now.result == "success" => Outcome::Good,
        _ => Outcome::Unknown,
    };
    let ended = if outcome == Outcome::Failed { now.down_usec } else { now.up_usec };
    let ended = ended.or(now.down_usec).filter(|e| now.began_usec.is_none_or(|b| *e >= b));
    UnitBar {
        name: unit.name.clone(),
        role,
        began: now.began_usec.map(|at| at.since(Moment::START)),
        ended: ended.map(|at| at.since(Moment::START)),
        outcome,
    }
}

/// The netdev that has an address by what `event` says: `wait-online` of a port, or a DHCP
/// client of its lease (networkd: `src/network/networkd-dhcp4.c`; NetworkManager:
/// `src/core/dhcp/nm-dhcp-client.c`).
fn with_address(event: &Event) -> Option<&str> {
    let text = &*event.text;
    let is_address = |word: &str| {
        let address = word.split(['/', ',']).next().unwrap_or_default();
        address.parse::<IpAddr>().is_ok()
    };
    if let Kind::Own(own) = &event.kind {
        let [Object::Named(netdev), _] = own.objects.as_slice() else { return None };
        let (_, said) = text.split_once(": online")?;
        let said = said.split(';').next().unwrap_or_default();
        let has_one = said.split(", ").any(is_address);
        return (own.about == About::Online && has_one).then_some(netdev);
    }
    let lease = text.split_once(": DHCPv4 address ").or_else(|| {
        let (_, rest) = text.split_once("dhcp4 (")?;
        let (netdev, rest) = rest.split_once("): state changed ")?;
        Some((netdev, rest.split_once(", address=")?.1))
    });
    let (netdev, address) = lease?;
    (may_be_ipoib_name(netdev) && is_address(word(address))).then_some(netdev)
}

fn who(event: &Event) -> String {
    if event.unit.contains('.') && !event.unit.ends_with(".scope") && &*event.unit != "init.scope" {
        return event.unit.to_string();
    }
    let program = event.program.rsplit('/').next().unwrap_or_default();
    match program {
        "" => "a program".to_owned(),
        program => KNOWN.logging_as(program).unwrap_or(program).to_owned(),
    }
}

#[cfg(test)]
mod tests;
