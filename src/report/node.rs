//! One judgement of the node: whether it is as it is meant to be, and what is not.
//!
//! It is made of what is expected and planned, not of what happens to be seen, so a card
//! that fell off the bus is in it. Every verb that speaks of the whole node says this.

use std::fmt;

use serde::Serialize;

/// The short answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeVerdict {
    /// All that is expected and planned is there.
    Ready,
    /// The host has no InfiniBand adapter, and none is expected.
    NoInfiniband,
    /// What is missing is optional, in use, or past: the node works.
    Deferred,
    /// Something that is expected or planned is not there.
    NotReady,
    /// What is expected is not known, or the host could not be read.
    Unknown,
}

impl NodeVerdict {
    /// The exit code of a verb that shows the node.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Ready | Self::NoInfiniband => 0,
            Self::Deferred => 1,
            Self::Unknown => 2,
            Self::NotReady => 3,
        }
    }

    /// The words for it on the screen.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::NoInfiniband => "no InfiniBand",
            Self::Deferred => "ready with exceptions",
            Self::NotReady => "NOT READY",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// How a thing that is expected stands: what every verb's verdict is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// As it is meant to be.
    Ready,
    /// It is not, and that is no failure: it is optional, in use, or denied by the site.
    Excused,
    /// It is not.
    Missing,
}

impl Standing {
    /// Of a port that is `ready` or not.
    #[must_use]
    pub const fn of_port(ready: bool, optional: bool, by_site: bool) -> Self {
        match ready {
            true => Self::Ready,
            false if optional || by_site => Self::Excused,
            false => Self::Missing,
        }
    }

    /// Of what ended with this exit code.
    #[must_use]
    pub const fn of_exit(code: u8) -> Self {
        match code {
            0 => Self::Ready,
            1 => Self::Excused,
            _ => Self::Missing,
        }
    }

    /// What several come to: the worst; `None` of nothing at all.
    #[must_use]
    pub fn worst(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().max()
    }
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeSeverity {
    /// It cannot be judged.
    Unknown,
    /// The node is not as it is meant to be.
    Error,
    /// The node works, and somebody should look.
    Warning,
}

impl fmt::Display for NodeSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown | Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// What kind of thing is wrong: the name by which programs know it, which never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeCode {
    /// The configuration cannot be read, so nobody knows what is expected.
    ConfigurationInvalid,
    /// The tree that was named shows no PCI devices at all.
    HostUnreadable,
    /// An expected port or adapter is not there.
    PortAbsent,
    /// An expected port has not climbed far enough.
    PortNotReady,
    /// A configured module is not loaded.
    ModuleNotLoaded,
    /// An adapter did not answer when it was asked for its state.
    AdapterSilent,
    /// The VFs of a PF cannot be planned.
    VfPlanError,
    /// Nothing can be done at a PF, although its plan is good.
    VfPlanBlocked,
    /// VFs are not as planned.
    VfNotAsPlanned,
    /// VFs are not as planned, and are left so because they are in use.
    VfDeferred,
    /// No plan gives the VF a port GUID, and it has none.
    VfGuidZero,
    /// The last boot did not come to a good end.
    BootFailed,
    /// A unit of ibprov's failed.
    UnitFailed,
}

/// Something that is not as it is meant to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeFinding {
    /// What kind of thing it is.
    pub code: NodeCode,
    /// How much it matters.
    pub severity: NodeSeverity,
    /// What it is about: a port, a PF, a unit, a file.
    pub object: String,
    /// What is wrong with it, and why as far as the host tells.
    pub message: String,
    /// What to do, one step each.
    pub advice: Vec<String>,
}

impl fmt::Display for NodeFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.severity, self.object, self.message)
    }
}

/// So many of so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// That are as they are meant to be.
    pub good: usize,
    /// That are expected or planned.
    pub of: usize,
}

/// The whole judgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The short answer.
    pub verdict: NodeVerdict,
    /// What `ibprov status` exits with.
    pub exit_code: u8,
    /// The ports that are expected.
    #[serde(rename = "expected_ports")]
    pub ports: Count,
    /// The VFs that are planned.
    #[serde(rename = "planned_vfs")]
    pub vfs: Count,
    /// What is wrong, the worst first.
    pub findings: Vec<NodeFinding>,
}

impl Judgement {
    /// The judgement that `findings` come to; `has_adapter`: the host shows one.
    #[must_use]
    pub fn new(ports: Count, vfs: Count, has_adapter: bool, findings: Vec<NodeFinding>) -> Self {
        let mut findings = findings;
        findings.sort_by_key(|finding| finding.severity);
        let verdict = match findings.first().map(|finding| finding.severity) {
            Some(NodeSeverity::Unknown) => NodeVerdict::Unknown,
            Some(NodeSeverity::Error) => NodeVerdict::NotReady,
            Some(NodeSeverity::Warning) => NodeVerdict::Deferred,
            None if ports.of == 0 && !has_adapter => NodeVerdict::NoInfiniband,
            None => NodeVerdict::Ready,
        };
        Self { verdict, exit_code: verdict.exit_code(), ports, vfs, findings }
    }

    /// The findings, those that say the same of several objects as one.
    #[must_use]
    pub fn grouped(&self) -> Vec<NodeFinding> {
        const MOST: usize = 4;
        let mut groups: Vec<(&NodeFinding, Vec<&str>)> = Vec::new();
        for finding in &self.findings {
            let says_the_same = |(first, _): &&mut (&NodeFinding, Vec<&str>)| {
                (first.code, first.severity) == (finding.code, finding.severity)
                    && (&first.message, &first.advice) == (&finding.message, &finding.advice)
            };
            match groups.iter_mut().find(says_the_same) {
                Some((_, objects)) => objects.push(&finding.object),
                None => groups.push((finding, vec![&finding.object])),
            }
        }
        let merged = |(finding, objects): (&NodeFinding, Vec<&str>)| {
            let shown = objects.get(..MOST).unwrap_or(&objects).join(", ");
            let more = objects.len().saturating_sub(MOST);
            let object = if more > 0 { format!("{shown} and {more} more") } else { shown };
            NodeFinding { object, ..finding.clone() }
        };
        groups.into_iter().map(merged).collect()
    }

    /// The first line of what people read.
    #[must_use]
    pub fn headline(&self) -> String {
        let mut words = Vec::new();
        if self.ports.of > 0 {
            words.push(format!("{} of {} expected ports ready", self.ports.good, self.ports.of));
        }
        if self.vfs.of > 0 {
            words.push(format!("{} of {} VFs as planned", self.vfs.good, self.vfs.of));
        }
        if words.is_empty() {
            words.push(match self.verdict {
                NodeVerdict::NoInfiniband => "this host shows no InfiniBand adapter".to_owned(),
                _ => "no port is expected and no VF is planned".to_owned(),
            });
        }
        format!("{}: {}", self.verdict.words(), words.join(", "))
    }
}
