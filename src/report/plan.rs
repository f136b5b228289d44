//! `ibprov plan`: what the VFs shall be, what would change, and why.

use serde::Serialize;

use super::pf::{Deferred, PfProblem};
use super::{SCHEMA, as_text};
use crate::names::{Binding, Guid, PINS_PATH, PciAddress, RdmaName};

pub use super::plan_finding::Finding;
pub use super::planned_vf::{Action, Change, PlannedAs, PlannedVf};

/// The plans of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanReport {
    /// Version of this format.
    pub schema: u32,
    /// The host's name.
    pub host: Option<String>,
    /// One for each `[[pf]]`.
    pub pfs: Vec<PlannedPf>,
    /// What could not be read.
    pub problems: Vec<String>,
    /// Something would be changed, or would if it could be.
    pub would_change: bool,
    /// Configuration, pins and host do not agree: somebody has to decide.
    pub drift: bool,
    /// A PF cannot be planned.
    pub errors: bool,
}

/// The plan of one PF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedPf {
    /// How the configuration names it.
    pub named: String,
    /// Where it does so.
    pub origin: String,
    /// Where it is.
    pub pci: Option<PciAddress>,
    /// Its RDMA device.
    pub rdma: Option<RdmaName>,
    /// Its node GUID.
    pub node_guid: Option<Guid>,
    /// The GUIDs of its ports.
    pub port_guids: Vec<Guid>,
    /// How many VFs are there.
    pub present: usize,
    /// How many VFs it shall have.
    pub wanted: usize,
    /// How many of them have pinned GUIDs.
    pub pinned: usize,
    /// How its VFs are bound, and why so; `None` with errors.
    pub bind: Option<Binding>,
    /// Its VFs as they shall be, and what would change; empty with errors.
    pub vfs: Vec<PlannedVf>,
    /// Errors, because of which it would be left alone.
    pub errors: Vec<Finding>,
    /// Why nothing can be done at it now, although the plan is good; in JSON a
    /// text.
    #[serde(serialize_with = "as_text::option")]
    pub problem: Option<PfProblem>,
    /// Why the number of VFs stays as it is, in JSON texts; what is deferred at a
    /// VF stands there.
    #[serde(serialize_with = "as_text::list")]
    pub deferred: Vec<Deferred>,
    /// What to know all the same.
    pub warnings: Vec<Finding>,
}

impl PlanReport {
    /// The plans of `pfs`; what was read of the host is judged here.
    #[must_use]
    pub fn new(host: Option<String>, pfs: Vec<PlannedPf>, problems: Vec<String>) -> Self {
        let changes = |pf: &PlannedPf| {
            pf.problem.is_some() || pf.vfs.iter().any(|vf| vf.action != Action::Keep)
        };
        Self {
            schema: SCHEMA,
            host,
            would_change: pfs.iter().any(changes),
            drift: pfs.iter().any(|pf| pf.warnings.iter().any(Finding::is_drift)),
            errors: pfs.iter().any(|pf| !pf.errors.is_empty()),
            pfs,
            problems,
        }
    }

    /// The text for people; `all` VFs, not only those that would change.
    #[must_use]
    pub fn to_text(&self, all: bool) -> String {
        let mut text = String::new();
        if self.pfs.is_empty() {
            text.push_str("no [[pf]] is configured: nothing is planned\n");
        }
        for pf in &self.pfs {
            pf.text(&mut text, all);
        }
        if self.drift {
            text.push_str(&format!(
                "\ndrift: decide; the pins ({PINS_PATH}) hold until then\n  keep the pinned GUIDs: set the configuration, or the host's number, so that it gives them\n  keep them for another card: ibprov plan --pin\n  give the VFs new GUIDs: ibprov plan --pin --replace\n"
            ));
        }
        for problem in &self.problems {
            text.push_str(&format!("could not read {problem}\n"));
        }
        text
    }
}

impl PlannedPf {
    fn text(&self, text: &mut String, all: bool) {
        if !text.is_empty() {
            text.push('\n');
        }
        let place = match (self.pci, &self.rdma) {
            (Some(pci), Some(rdma)) => format!("PF {pci} {rdma}"),
            (Some(pci), None) => format!("PF {pci}"),
            (None, _) => self.named.clone(),
        };
        text.push_str(&format!("{place} ({})\n", self.origin));
        if self.errors.is_empty() {
            text.push_str(&format!("  {}\n", self.summary()));
        } else {
            text.push_str("  would be left alone:\n");
        }
        if let Some(bind) = self.bind.filter(|_| self.wanted > 0) {
            text.push_str(&format!("  VFs are bound {bind}\n"));
        }
        if let Some(problem) = &self.problem {
            text.push_str(&format!("  nothing can be done: {problem}\n"));
        }
        for deferred in &self.deferred {
            text.push_str(&format!("  deferred: {deferred}\n"));
        }
        lines(text, "error", &self.errors);
        lines(text, "warning", &self.warnings);
        for vf in &self.vfs {
            vf.text(text, all);
        }
    }

    fn summary(&self) -> String {
        let count = |action| self.vfs.iter().filter(|vf| vf.action == action).count();
        let [keep, create, change, remove, defer] =
            [Action::Keep, Action::Create, Action::Change, Action::Remove, Action::Defer]
                .map(count);
        let mut words = vec![format!("{} wanted, {} there", vfs(self.wanted), self.present)];
        let parts = [
            (create, "to create"),
            (change, "to change"),
            (remove, "to remove"),
            (defer, "deferred"),
            (keep, "as wanted"),
        ];
        words.extend(parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
        words.push(match self.pinned {
            0 => "GUIDs not pinned".to_owned(),
            n if n == self.wanted => "GUIDs pinned".to_owned(),
            n => format!("GUIDs of {n} pinned"),
        });
        if self.wanted == 0 {
            words.pop();
        }
        words.join(", ")
    }
}

/// More lines of one kind are counted.
const MOST_LINES: usize = 20;

fn lines(text: &mut String, kind: &str, findings: &[Finding]) {
    for finding in findings.iter().take(MOST_LINES) {
        text.push_str(&format!("  {kind}: {finding}\n"));
    }
    if let Some(more) = findings.len().checked_sub(MOST_LINES).filter(|n| *n > 0) {
        text.push_str(&format!("  {kind}: and {more} more of such\n"));
    }
}

fn vfs(count: usize) -> String {
    if count == 1 { "1 VF".to_owned() } else { format!("{count} VFs") }
}
