//! The report of `ibprov apply` for one PF: `/run/ibprov/pf/PCI.json`, and its
//! text.

use serde::Serialize;

use super::SCHEMA;
use super::duration::seconds;
use crate::names::{Guid, IfName, PciAddress, RdmaName, VfIndex, VfRung};

pub use super::pf_problem::PfProblem;
pub use super::vf_step::{Deferred, Stage, VfStep};

/// How it went, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PfVerdict {
    /// Every VF is as wanted.
    Right,
    /// Something wanted was left undone, because a VF is in use.
    Deferred,
    /// A signal ended it before its time.
    Interrupted,
    /// The PF or a VF is not as wanted.
    NotRight,
}

impl PfVerdict {
    /// The exit code, the same for every verb.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Right => 0,
            Self::Deferred | Self::Interrupted => 1,
            Self::NotRight => 3,
        }
    }

    /// The word for it, as JSON has it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Deferred => "deferred",
            Self::Interrupted => "interrupted",
            Self::NotRight => "not-right",
        }
    }
}

/// All that `apply` saw and did at one PF. Times are microseconds of
/// CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PfReport {
    /// Version of this format.
    pub schema: u32,
    /// The PF.
    pub pf: PciAddress,
    /// When it began.
    pub started_usec: u64,
    /// When it ended.
    pub finished_usec: u64,
    /// How it went.
    pub verdict: PfVerdict,
    /// Its exit code.
    pub exit_code: u8,
    /// Why nothing could be done.
    pub problem: Option<PfProblem>,
    /// The same as text.
    pub problem_text: String,
    /// What was done, in order.
    pub steps: Vec<PfStepReport>,
    /// The VFs of the plan.
    pub vfs: Vec<VfReport>,
    /// What was left undone, because a VF is in use.
    pub deferred: Vec<Deferred>,
    /// Failures of the PF as a whole, and what could not be read.
    pub problems: Vec<String>,
}

/// A step and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PfStepReport {
    /// What was to be done.
    #[serde(flatten)]
    pub step: VfStep,
    /// What the system answered, if not success.
    pub failure: String,
}

/// A VF of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VfReport {
    /// Which.
    pub vf: VfIndex,
    /// Its PCI function.
    pub pci: Option<PciAddress>,
    /// It is as wanted.
    pub right: bool,
    /// It is left as it is, because it is in use.
    pub deferred: bool,
    /// The highest rung it has reached.
    pub reached: Option<VfRung>,
    /// The rung that it is to reach.
    pub goal: VfRung,
    /// The node GUID of the plan.
    pub node_guid: Guid,
    /// The port GUID of the plan.
    pub port_guid: Guid,
    /// Its RDMA device.
    pub rdma: Option<RdmaName>,
    /// Its netdev.
    pub netdev: Option<IfName>,
    /// Why it is not as wanted.
    pub cause: String,
}

impl PfReport {
    /// The constant head of a report.
    #[must_use]
    pub const fn blank(pf: PciAddress, started_usec: u64) -> Self {
        Self {
            schema: SCHEMA,
            pf,
            started_usec,
            finished_usec: started_usec,
            verdict: PfVerdict::Interrupted,
            exit_code: PfVerdict::Interrupted.exit_code(),
            problem: None,
            problem_text: String::new(),
            steps: Vec::new(),
            vfs: Vec::new(),
            deferred: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// The sentence that says it all.
    #[must_use]
    pub fn headline(&self) -> String {
        let took = seconds(self.finished_usec.saturating_sub(self.started_usec));
        let right = self.vfs.iter().filter(|v| v.right).count();
        let changed = match self.steps.len() {
            0 => "nothing was changed".to_owned(),
            1 => "1 step".to_owned(),
            n => format!("{n} steps"),
        };
        let tail = match self.verdict {
            PfVerdict::Right => String::new(),
            PfVerdict::Deferred => ": the rest is in use".to_owned(),
            PfVerdict::Interrupted => ": stopped by a signal".to_owned(),
            PfVerdict::NotRight => ": NOT RIGHT".to_owned(),
        };
        format!(
            "PF {}: {right} of {} VFs as planned after {took} ({changed}){tail}",
            self.pf,
            self.vfs.len()
        )
    }

    /// The text of it without the VFs, which have journal entries of their own.
    #[must_use]
    pub fn summary(&self) -> String {
        let is_vf = |line: &&str| !line.starts_with("  VF ");
        self.to_text().lines().filter(is_vf).collect::<Vec<_>>().join("\n")
    }

    /// The text of it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n", self.headline());
        let mut line = |l: String| {
            text.push_str(&l);
            text.push('\n');
        };
        if !self.problem_text.is_empty() {
            line(format!("  why: {}", self.problem_text));
        }
        for vf in self.vfs.iter().filter(|v| !v.right) {
            line(format!("  {}", vf.line()));
        }
        for deferred in &self.deferred {
            line(format!("  deferred: {deferred}"));
        }
        for problem in &self.problems {
            line(format!("  note: {problem}"));
        }
        text
    }
}

impl VfReport {
    /// `VF 3 (0000:01:00.4): NOT RIGHT: reached guid, missing bound: ...`
    #[must_use]
    pub fn line(&self) -> String {
        let pci = self.pci.map(|p| format!(" ({p})")).unwrap_or_default();
        let reached = self.reached.map_or("nothing", VfRung::word);
        let state = if self.deferred { "deferred" } else { "NOT RIGHT" };
        let why = if self.cause.is_empty() { String::new() } else { format!(": {}", self.cause) };
        format!("VF {}{pci}: {state}: reached {reached} of {}{why}", self.vf, self.goal.word())
    }
}

/// A PF of the configuration for which nothing can be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unresolved {
    /// How the configuration names it.
    pub which: String,
    /// Where it does so.
    pub origin: String,
    /// The PF, where it is clear which it is.
    pub pci: Option<PciAddress>,
    /// What is wrong.
    pub errors: Vec<String>,
    /// It is right and only not there yet.
    pub may_pass: bool,
}

/// What came of one PF: its report as JSON, and the exit code.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The PF.
    pub pf: PciAddress,
    /// Its exit code.
    pub exit_code: u8,
    /// One sentence.
    pub headline: String,
    /// The report, `null` if there is none.
    pub report: serde_json::Value,
}

impl Outcome {
    /// From what `ibprov apply --format json` printed, and how it failed.
    #[must_use]
    pub fn of(pf: PciAddress, printed: &str, failure: &str) -> Self {
        let parsed: Option<serde_json::Value> = serde_json::from_str(printed).ok();
        let report = parsed.and_then(|v| v.pointer("/pfs/0").cloned());
        let Some(report) = report else {
            return Self::lost(pf, &format!("{failure} {printed}"));
        };
        let text = |name: &str| {
            let text = report.get(name).and_then(serde_json::Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let code = report.get("exit_code").and_then(serde_json::Value::as_u64);
        Self {
            pf,
            exit_code: code.and_then(|c| u8::try_from(c).ok()).unwrap_or(3),
            headline: text("headline"),
            report,
        }
    }

    /// For one that gave no report.
    #[must_use]
    pub fn lost(pf: PciAddress, why: &str) -> Self {
        Self {
            pf,
            exit_code: 3,
            headline: format!("PF {pf}: no report: {}", why.trim()),
            report: serde_json::Value::Null,
        }
    }
}
