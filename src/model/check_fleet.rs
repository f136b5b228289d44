//! `ibprov check --fleet`: what many nodes' reports say together.

use serde::{Deserialize, Serialize};

use super::{Advice, Code, Kind, Report, Severity, Verdict};

/// The reports of many nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckFleetReport {
    /// The nodes whose reports were read.
    pub nodes: NodeCounts,
    /// Each kind of finding: errors first, and what few nodes have before what many have.
    #[serde(skip)]
    pub findings: Vec<FleetFinding>,
    /// What could not be read, as far as it is listed.
    #[serde(skip)]
    pub problems: Vec<Unread>,
    /// How many files could not be read.
    pub unread: usize,
}

/// How many nodes there are, and how they stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeCounts {
    /// The nodes whose reports were read.
    pub all: usize,
    /// Those whose reports have exit code 0.
    pub good: usize,
    /// Those with exceptions, or whose state is not known: exit code 1 or 2.
    pub exceptions: usize,
    /// Those that are not ready: exit code 3.
    pub not_ready: usize,
}

/// A finding as the report of a node has it: another version of ibprov may know more codes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeFinding {
    /// The name by which programs know it.
    pub code: String,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about on the node of the example; `null` for the whole host.
    pub object: Option<String>,
    /// What is wrong with it on the node of the example.
    pub message: String,
    /// What to do there.
    #[serde(default)]
    pub advice: Vec<Advice>,
}

/// A kind of finding, and the nodes that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetFinding {
    /// As the node of the example has it.
    #[serde(flatten)]
    pub first: NodeFinding,
    /// The node that `object`, `message` and `advice` are of; a file that was not read.
    pub example: String,
    /// The kernel with which it begins; `null` if the nodes do not show one.
    pub since_kernel: Option<String>,
    /// The nodes that have it.
    pub nodes: Vec<String>,
}

/// A file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub file: String,
    pub why: String,
}

impl CheckFleetReport {
    pub fn judge(&self) -> Verdict {
        let NodeCounts { all, good, not_ready, .. } = self.nodes;
        match () {
            () if all == 0 => Verdict::Unknown,
            () if not_ready > 0 => Verdict::NotReady,
            () if good < all || self.unread > 0 => Verdict::Exceptions,
            () => Verdict::Ready,
        }
    }
}

impl CheckFleetReport {
    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self, FleetFinding> {
        let unread = |Unread { file, why }: &Unread| FleetFinding {
            first: NodeFinding {
                code: Code::NotRead.name().to_owned(),
                severity: Severity::Warning,
                object: Some(file.clone()),
                message: why.clone(),
                advice: Vec::new(),
            },
            example: file.clone(),
            since_kernel: None,
            nodes: Vec::new(),
        };
        let findings = self.findings.iter().cloned().chain(self.problems.iter().map(unread));
        Report::new(Kind::CheckFleet, self.judge(), findings.collect(), self)
    }
}
