//! What `ibprov plan --fleet` says.

use std::fmt;

use serde::Serialize;

use super::{Code, Finding, Kind, Report, Verdict, not_read};
use crate::names::{Guid, GuidKind, PciAddress};

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetReport {
    /// How many hosts' plans were read.
    pub hosts: usize,
    /// How many VFs they have.
    pub vfs: usize,
    /// Findings in all, those that are not listed too.
    pub count: usize,
    #[serde(skip)]
    pub findings: Vec<FleetFinding>,
    /// Files that could not be read, and why.
    #[serde(skip)]
    pub problems: Vec<String>,
}

/// A GUID that a thousand hosts have is shown for this many.
pub const MOST_HOLDERS: usize = 8;

impl FleetReport {
    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self, FleetFinding> {
        let verdict = if !self.problems.is_empty() || self.hosts == 0 {
            Verdict::Unknown
        } else if self.count > 0 {
            Verdict::NotReady
        } else {
            Verdict::Ready
        };
        let unread = not_read(&self.problems).into_iter();
        let unread = unread.map(|finding| FleetFinding { finding, holders: Vec::new() });
        let findings = self.findings.iter().cloned().chain(unread).collect();
        Report::new(Kind::PlanFleet, verdict, findings, self)
    }
}

/// A GUID that is in two places, or one that is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetFinding {
    /// What every finding has; its object is the GUID, or the file that was not read.
    #[serde(flatten)]
    pub finding: Finding,
    /// Who has the GUID, in the order of the hosts.
    pub holders: Vec<Holder>,
}

impl FleetFinding {
    pub fn of(code: Code, guid: Guid, holders: Vec<Holder>) -> Self {
        let message = match code {
            Code::VfGuidDuplicate => format!("{guid} is used more than once"),
            Code::GuidLinkLocalTwin => {
                let twin = guid.link_local_twin();
                format!("{guid} and {twin} map to the same IPv6 link-local address")
            }
            _ => format!(
                "the GUID {guid} is all zero, with which the port stays down or rdma_cm fails"
            ),
        };
        Self { finding: Finding::error(code, message).about(guid), holders }
    }
}

/// Who has a GUID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Holder {
    /// The host, as its file is called.
    pub host: String,
    pub pci: PciAddress,
    /// The VF; absent for the card itself.
    pub vf: Option<u16>,
    pub kind: GuidKind,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, pci, vf, kind } = self;
        match vf {
            Some(vf) => write!(f, "{host}: {kind} of VF {vf} of {pci}"),
            None => write!(f, "{host}: {kind} of the adapter {pci}"),
        }
    }
}

impl fmt::Display for FleetFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.finding.message)?;
        self.holders.iter().try_for_each(|holder| write!(f, "\n  {holder}"))?;
        let is_cut = self.holders.len() == MOST_HOLDERS;
        if is_cut { f.write_str("\n  and possibly more") } else { Ok(()) }
    }
}
