//! The report of `ibprov wait-online`: `/run/ibprov/online.json`, and its text.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::names::{LinkState, Moment, PhysicalState, Rate, Rung};

use super::{
    Cause, Code, Degraded, Finding, Kind, PortProgress, Report, Severity, Standing, Verdict,
    not_read, seconds,
};

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Goal {
    /// The rung that every port has to reach.
    pub rung: Rung,
    /// And its netdev has an address of global scope.
    pub address: bool,
    /// And it has been so for this long without interruption, seconds.
    #[serde(default)]
    pub stable_sec: u64,
}

/// What a port lacks. The names are promised (JSON, `grep`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(into = "&'static str", try_from = "String")]
pub enum Lack {
    /// A rung below `link`: why is for the ladder to say.
    Rung(Rung),
    /// Its state is not known: the driver or firmware does not answer.
    Answer,
    /// The physical link.
    Link,
    /// The logical state Active, or a LID.
    Active,
    /// The netdev is down: nobody brought it up.
    Up,
    /// The netdev is up and has no carrier.
    Carrier,
    /// The port in Ethernet mode has no GID of type RoCE v2 for an address of its netdev.
    Gid,
    /// The netdev has no address of global scope.
    Address,
    /// It lacks nothing now, and not yet for as long as it has to.
    Stable,
}

impl From<Lack> for &'static str {
    fn from(lack: Lack) -> Self {
        lack.word()
    }
}

impl TryFrom<String> for Lack {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        // `link` and `active` are rungs too; a port is said to lack those only as these.
        let own = [
            Self::Answer,
            Self::Link,
            Self::Active,
            Self::Up,
            Self::Carrier,
            Self::Gid,
            Self::Address,
            Self::Stable,
        ];
        let rungs = Rung::ALL.into_iter().map(Self::Rung);
        let found = own.into_iter().chain(rungs).find(|lack| lack.word() == word);
        found.ok_or_else(|| format!("{word:?} is not a state of a port"))
    }
}

impl Lack {
    pub fn word(self) -> &'static str {
        match self {
            Self::Rung(rung) => rung.word(),
            Self::Answer => "answer",
            Self::Link => "link",
            Self::Active => "active",
            Self::Up => "up",
            Self::Carrier => "carrier",
            Self::Gid => "gid",
            Self::Address => "address",
            Self::Stable => "stable",
        }
    }

    /// The state of a port that lacks it: `no LID`.
    pub const fn lacking(self) -> &'static str {
        match self {
            Self::Rung(rung) => rung.lacking(),
            Self::Answer => "state unknown",
            Self::Link => "no link",
            Self::Active => "not active",
            Self::Up => "netdev down",
            Self::Carrier => "no carrier",
            Self::Gid => "no GID",
            Self::Address => "no address",
            Self::Stable => "online, not stable yet",
        }
    }
}

/// What was waited for, and what came. Times are microseconds of
/// CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OnlineReport {
    /// Version of ibprov.
    #[serde(default)]
    pub version: Cow<'static, str>,
    /// When the wait began.
    #[serde(default)]
    pub started_usec: Moment,
    #[serde(default)]
    pub finished_usec: Moment,
    /// How long it was to wait, seconds.
    #[serde(default)]
    pub timeout_sec: u64,
    /// What was waited for.
    pub goal: Goal,
    #[serde(skip_serializing)]
    pub verdict: Verdict,
    /// Each port that was waited for.
    #[serde(default)]
    pub ports: Vec<OnlinePort>,
    /// What is wrong with the configuration, and left out: a port may not be waited for.
    #[serde(skip)]
    pub configuration: Vec<Finding>,
    /// What could not be read or listened to.
    #[serde(skip)]
    pub problems: Vec<String>,
}

/// A port that was waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OnlinePort {
    /// How far it is, up to `named`.
    #[serde(flatten)]
    pub progress: PortProgress,
    /// It is online, or in Ethernet mode and not waited for.
    pub online: bool,
    /// Its LID; none if none is assigned.
    pub lid: Option<u32>,
    /// Its logical state.
    pub state: Option<LinkState>,
    pub physical: Option<PhysicalState>,
    /// The rate of its link; it means nothing before the port is Active.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// What of its link is below the configured minimum, once it is Active.
    #[serde(default)]
    pub degraded: Vec<Degraded>,
    /// Addresses of global scope on its netdev, its P_Key children and what
    /// they are enslaved to.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// What it lacks.
    #[serde(rename = "missing")]
    pub lack: Option<Lack>,
    /// Why it lacks that, as far as this can be told.
    pub cause: Option<Cause>,
    /// For how long this is seen, seconds.
    pub for_sec: Option<u64>,
}

impl OnlinePort {
    fn standing(&self) -> Standing {
        let is_in_use = self.cause.as_ref().is_some_and(|cause| cause.in_use);
        Standing::of_port(self.online, self.progress.optional, is_in_use)
    }

    /// `ib0, mlx5_0/1 (0000:4b:00.0)`.
    pub fn name(&self) -> String {
        let label = self.progress.label();
        match &self.progress.netdev {
            Some(netdev) => format!("{netdev}, {label}"),
            None => label.to_string(),
        }
    }

    /// The two in one line.
    pub fn line(&self) -> String {
        format!("{}: {}", self.name(), self.said())
    }

    /// `no link: no cable, or the other end is down, for 42 s`.
    pub fn said(&self) -> String {
        if self.progress.is_ethernet() {
            return "in Ethernet mode, not waited for".to_owned();
        }
        let Some(lacking) = self.lack.map(Lack::lacking) else {
            let lid = self.lid.map(|lid| format!(", LID {lid}")).unwrap_or_default();
            let addresses: String = self.addresses.iter().map(|a| format!(", {a}")).collect();
            let degraded = match self.degraded.as_slice() {
                [] => String::new(),
                degraded => format!("; degraded: {}", Degraded::phrase(degraded)),
            };
            return format!("online{lid}{addresses}{degraded}");
        };
        let cause = self.cause.as_ref().map(Cause::line).filter(|cause| !cause.is_empty());
        let since = self.for_sec.filter(|sec| *sec > 0).map(|sec| format!(", for {sec} s"));
        let since = since.unwrap_or_default();
        format!("{lacking}: {}{since}", cause.as_deref().unwrap_or("the cause is unknown"))
    }
}

impl OnlineReport {
    /// What is wrong with `port`.
    pub fn findings(&self, port: &OnlinePort) -> Vec<Finding> {
        let severity = match port.standing() {
            Standing::Ready => return Vec::new(),
            Standing::Excused => Severity::Warning,
            Standing::Missing => Severity::Error,
        };
        let unknown = (self.verdict, port.lack) == (Verdict::NotBegun, Some(Lack::Rung(Rung::Pci)));
        // As status says it, but for what only this verb asks for.
        let is_below = matches!(port.lack, Some(Lack::Rung(_))) && !unknown;
        if is_below && !port.progress.is_ready() {
            return port.progress.findings(port.cause.as_ref());
        }
        let (code, object) = match (port.lack, &port.progress.netdev) {
            (Some(Lack::Up | Lack::Carrier), Some(netdev)) if !port.progress.must_be_ethernet => {
                (Code::InterfaceNotOnline, netdev.into())
            }
            (Some(Lack::Address | Lack::Stable) | None, _) => {
                (Code::PortNotOnline, port.progress.label())
            }
            _ if unknown => (Code::NoSuchPort, port.progress.label()),
            _ => (Code::PortNotActive, port.progress.label()),
        };
        let mut cause = port.cause.iter().map(|cause| cause.text.as_str());
        let cause = cause.find(|text| !text.is_empty());
        let lacking = port.lack.map_or("not online", Lack::lacking);
        let message = format!("{lacking}: {}", cause.unwrap_or("the cause is unknown"));
        let causes = port.cause.iter().flat_map(Cause::all);
        let advice = causes.flat_map(|cause| cause.advice.clone());
        vec![Finding::new(code, severity, message).about(object).advise(advice)]
    }

    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let mut findings: Vec<Finding> =
            self.ports.iter().flat_map(|port| self.findings(port)).collect();
        let degraded = self.ports.iter().filter(|port| !port.degraded.is_empty());
        findings.extend(degraded.map(|port| {
            let message = format!("degraded: {}", Degraded::phrase(&port.degraded));
            Finding::warning(Code::PortDegraded, message).about(port.progress.label())
        }));
        Finding::worst_first(&mut findings);
        findings.splice(0..0, self.configuration.iter().cloned());
        if self.verdict == Verdict::Interrupted {
            findings.push(Finding::warning(Code::Interrupted, "a signal ended the wait"));
        }
        findings.extend(not_read(&self.problems));
        Report::new(Kind::WaitOnline, self.verdict, findings, self)
    }

    /// Of a wait that has just begun.
    pub const fn new(started_usec: Moment, timeout_sec: u64, goal: Goal) -> Self {
        Self {
            version: Cow::Borrowed(env!("CARGO_PKG_VERSION")),
            started_usec,
            finished_usec: started_usec,
            timeout_sec,
            goal,
            verdict: Verdict::NothingExpected,
            ports: Vec::new(),
            configuration: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// It ended with `ports`.
    pub fn finish(&mut self, ports: Vec<OnlinePort>, forced: Option<Verdict>, now: Moment) {
        self.finished_usec = now;
        let verdict = || match Standing::worst(ports.iter().map(OnlinePort::standing)) {
            _ if !self.configuration.is_empty() => Verdict::NotReady,
            Some(Standing::Missing) => Verdict::NotReady,
            Some(Standing::Excused) => Verdict::Exceptions,
            _ if ports.iter().all(|p| p.progress.is_ethernet()) => Verdict::NothingExpected,
            _ if ports.iter().any(|p| !p.degraded.is_empty()) => Verdict::Exceptions,
            _ => Verdict::Ready,
        };
        self.verdict = forced.unwrap_or_else(verdict);
        self.ports = ports;
    }

    /// The sentence that says it all.
    pub fn headline(&self) -> String {
        let took = seconds(self.finished_usec.since(self.started_usec));
        let waited: Vec<&OnlinePort> =
            self.ports.iter().filter(|p| !p.progress.is_ethernet()).collect();
        let online = waited.iter().filter(|p| p.online).count();
        let count = format!("{online} of {} ports online", waited.len());
        match self.verdict {
            Verdict::NothingExpected => {
                "no InfiniBand port is expected: nothing to wait for".to_owned()
            }
            Verdict::Interrupted => format!("stopped by a signal after {took}: {count}"),
            Verdict::NotBegun => {
                let unknown = waited.iter().filter(|p| p.lack == Some(Lack::Rung(Rung::Pci)));
                let names: Vec<_> = unknown.map(|p| p.progress.expected.to_string()).collect();
                format!("no such port: {}", names.join(", "))
            }
            Verdict::NotReady if !self.configuration.is_empty() => {
                format!(
                    "{count} after {took}: the configuration has an error, so that others may be missing"
                )
            }
            Verdict::NotReady if self.gave_up() => {
                format!("{count} after {took}: the missing ports can no longer appear")
            }
            _ => format!("{count} after {took}"),
        }
    }

    fn gave_up(&self) -> bool {
        self.finished_usec.since(self.started_usec) < Duration::from_secs(self.timeout_sec)
    }
}
