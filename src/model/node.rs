//! One judgement of the node: whether it is as it is meant to be, and what is not.
//!
//! It is made of what is expected and planned, not of what happens to be seen, so a card
//! that fell off the bus is in it. Every verb that speaks of the whole node says this.

use serde::{Deserialize, Serialize};

use super::{Code, Finding, Severity, Verdict};
use crate::names::Object;

impl Verdict {
    /// The words for it on the screen.
    pub fn words(self) -> &'static str {
        match self {
            Self::NothingExpected => "nothing expected",
            Self::Exceptions => "ready with exceptions",
            Self::NotReady => "NOT READY",
            Self::Unknown => "UNKNOWN",
            _ => self.word(),
        }
    }
}

/// How a thing that is expected stands: what every verb's verdict is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// As it is meant to be.
    Ready,
    /// It is not, and that is no failure: it is optional or in use.
    Excused,
    /// It is not.
    Missing,
}

impl Standing {
    /// Of a port that is `ready` or not.
    pub const fn of_port(ready: bool, optional: bool, is_excused: bool) -> Self {
        match ready {
            true => Self::Ready,
            false if optional || is_excused => Self::Excused,
            false => Self::Missing,
        }
    }

    /// Of what ended with this exit code.
    pub const fn of_exit(code: u8) -> Self {
        match code {
            0 => Self::Ready,
            1 => Self::Excused,
            _ => Self::Missing,
        }
    }

    /// What several come to: the worst; `None` of nothing at all.
    pub fn worst(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().max()
    }
}

/// So many of so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Count {
    /// That are as they are meant to be.
    pub good: usize,
    /// That are expected or planned.
    pub of: usize,
}

/// How many of the expected ports are how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PortCount {
    /// That have reached the state that boot waits for.
    pub good: usize,
    /// That the fabric uses, whether or not they have the netdev or the settings that they need.
    pub active: usize,
    /// That could be, and of which what was looked at does not tell.
    pub not_judged: usize,
    /// That are expected.
    pub of: usize,
}

impl PortCount {
    pub fn sum(all: &[(Object, Self)]) -> Self {
        let sum = |of: fn(&Self) -> usize| all.iter().map(|(_, count)| of(count)).sum();
        Self {
            good: sum(|count| count.good),
            active: sum(|count| count.active),
            not_judged: sum(|count| count.not_judged),
            of: sum(|count| count.of),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Judgement {
    /// The short answer.
    #[serde(skip)]
    pub verdict: Verdict,
    /// The ports that are expected.
    #[serde(rename = "expected_ports")]
    pub ports: PortCount,
    /// The VFs that are planned.
    #[serde(rename = "planned_vfs")]
    pub vfs: Count,
    /// What is wrong, the worst first.
    #[serde(skip)]
    pub findings: Vec<Finding>,
    /// The ports by themselves, each as findings call it.
    #[serde(skip)]
    pub of_ports: Vec<(Object, PortCount)>,
    /// The VFs of each PF, in the same way.
    #[serde(skip)]
    pub of_pfs: Vec<(Object, Count)>,
    /// The host shows an InfiniBand adapter.
    #[serde(skip)]
    pub has_adapter: bool,
    /// A soft RoCE device is configured or there.
    #[serde(skip)]
    pub has_soft_roce: bool,
}

impl Judgement {
    /// The judgement that `findings` come to; what the host has besides is in the fields of
    /// these names.
    pub fn new(
        of_ports: Vec<(Object, PortCount)>,
        of_pfs: Vec<(Object, Count)>,
        has_adapter: bool,
        has_soft_roce: bool,
        mut findings: Vec<Finding>,
    ) -> Self {
        let ports = PortCount::sum(&of_ports);
        let vfs = Count {
            good: of_pfs.iter().map(|(_, count)| count.good).sum(),
            of: of_pfs.iter().map(|(_, count)| count.of).sum(),
        };
        // An error of the configuration may be why the rest is so.
        findings.sort_by_key(|finding| {
            (!finding.code.leaves_unknown(), !finding.is_of_configuration(), finding.severity)
        });
        let is_told =
            |object: &Object| findings.iter().flat_map(|f| &f.objects).any(|o| o.is(object));
        let is_unseen = |(object, count): &(Object, PortCount)| {
            count.active + count.not_judged == 0 && !is_told(object)
        };
        let verdict = match findings.iter().map(|finding| finding.severity).min() {
            _ if findings.iter().any(|f| f.code.leaves_unknown()) => Verdict::Unknown,
            Some(Severity::Error) => Verdict::NotReady,
            // Nothing good is believed of a port that was not read.
            _ if ports.of > 0 && ports.not_judged == ports.of => Verdict::Unknown,
            Some(Severity::Warning) => Verdict::Exceptions,
            // No complaint of a port is no evidence that it works.
            _ if of_ports.iter().any(is_unseen) => Verdict::Unknown,
            // A note stands last, and changes nothing.
            Some(Severity::Info) | None if ports.of == 0 && of_pfs.is_empty() && !has_soft_roce => {
                Verdict::NothingExpected
            }
            Some(Severity::Info) | None => Verdict::Ready,
        };
        Self { verdict, ports, vfs, findings, of_ports, of_pfs, has_adapter, has_soft_roce }
    }

    /// What it is of the objects alone of which `is_of` is true; where the node could not be
    /// judged, they are not.
    pub fn only(self, is_of: impl Fn(&Object) -> bool) -> Self {
        let (mut ports, mut pfs, mut findings) = (self.of_ports, self.of_pfs, self.findings);
        ports.retain(|(object, _)| is_of(object));
        pfs.retain(|(object, _)| is_of(object));
        findings.retain(|f| {
            f.code.leaves_unknown() || f.is_of_configuration() || f.objects.iter().any(&is_of)
        });
        let mut judged = Self::new(ports, pfs, self.has_adapter, self.has_soft_roce, findings);
        let PortCount { of, active, not_judged, .. } = judged.ports;
        // None of these works; that others do is no matter here.
        if judged.verdict == Verdict::Exceptions && of > 0 && active + not_judged == 0 {
            judged.verdict = Verdict::NotReady;
        }
        judged
    }

    /// True if nothing is wrong, and at least one port is used by the fabric.
    pub const fn is_in_use(&self) -> bool {
        matches!(self.verdict, Verdict::Ready) && self.ports.active > 0
    }

    /// True if nothing is expected of the host because it shows no adapter.
    pub fn is_without_adapter(&self) -> bool {
        self.verdict == Verdict::NothingExpected && !self.has_adapter
    }

    /// What is said of a host without an expected port and a planned VF.
    fn nothing(&self) -> &'static str {
        if self.is_without_adapter() {
            "this host shows no InfiniBand adapter"
        } else {
            "no port is expected and no VF is planned"
        }
    }

    /// How many ports and VFs are as they are meant to be, or why there are none, in short.
    pub fn counts(&self) -> String {
        let counts = [
            (self.ports.of > 0).then(|| format!("{}/{} ports", self.ports.active, self.ports.of)),
            (self.ports.not_judged > 0).then(|| format!("{} not judged", self.ports.not_judged)),
            (self.vfs.of > 0).then(|| format!("{}/{} VFs", self.vfs.good, self.vfs.of)),
        ];
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        match counts.as_slice() {
            [] => self.nothing().to_owned(),
            counts => counts.join(", "),
        }
    }

    /// The first line of what people read.
    pub fn headline(&self) -> String {
        let mut words = Vec::new();
        if self.ports.of > 0 {
            words.push(format!("{} of {} expected ports active", self.ports.active, self.ports.of));
        }
        if self.ports.active > self.ports.good && self.verdict == Verdict::NotReady {
            words.push(format!("{} ready", self.ports.good));
        }
        if self.ports.not_judged > 0 {
            words.push(format!("{} not judged", self.ports.not_judged));
        }
        if self.vfs.of > 0 {
            words.push(format!("{} of {} VFs as planned", self.vfs.good, self.vfs.of));
        }
        if self.findings.iter().any(|finding| finding.code == Code::RtnlHeld) {
            words.push("a process holds the RTNL lock".to_owned());
        }
        if words.is_empty() {
            words.push(self.nothing().to_owned());
        }
        format!("{}: {}", self.verdict.words(), words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_which_nothing_was_seen_is_not_ready() {
        let port = Object::from("mlx5_0/1 (0000:4b:00.0)");
        let verdict = |active, findings| {
            let count = PortCount { good: 1, active, of: 1, ..PortCount::default() };
            let ports = vec![(port.clone(), count)];
            Judgement::new(ports, Vec::new(), true, false, findings).verdict
        };
        let optional = Finding::new(Code::PortNotActive, Severity::Info, "no link").about(&port);
        assert_eq!(verdict(1, Vec::new()), Verdict::Ready);
        assert_eq!(verdict(0, vec![optional]), Verdict::Ready);
        assert_eq!(verdict(0, Vec::new()), Verdict::Unknown);
    }
}
