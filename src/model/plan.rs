//! `ibprov plan`: what the VFs shall be, what would change, and why.

use serde::Serialize;

use super::{
    Code, Deferred, Finding, Kind, Report, RxeReport, RxeState, Severity, ToDo, Verdict, VfStep,
    common::{as_text, messages, with_remedy},
    netns::Netns,
    node::Count,
    not_read,
};
use crate::names::{Binding, Guid, Object, PciAddress, RdmaName, VfIndex, vf_ranges};

pub use super::planned_vf::{Action, Change, PlannedVf, WantedPf, WantedVf};
pub use super::vf_lack::Attribute;

/// The plans of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanReport {
    /// The host's name.
    pub host: Option<String>,
    /// One for each `[[pf]]`.
    pub pfs: Vec<PlannedPf>,
    /// The soft RoCE devices, if any is configured.
    pub rxe: Vec<RxeReport>,
    /// The RDMA network namespace mode; `null` where none is configured.
    pub netns: Option<Netns>,
    /// Configured settings in firmware that are not in effect.
    #[serde(skip)]
    pub firmware: Vec<Finding>,
    /// What could not be read.
    #[serde(skip)]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlannedPf {
    /// How the configuration names it.
    pub named: String,
    pub origin: String,
    pub pci: Option<PciAddress>,
    pub rdma: Option<RdmaName>,
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
    /// What would be done, in this order; by VF it is in `vfs`.
    pub steps: Vec<VfStep>,
    /// A plan can be made for it: it has no errors.
    pub is_planned: bool,
    /// Errors, because of which it would be left alone.
    #[serde(skip)]
    pub errors: Vec<Finding>,
    /// What does not come about, whatever would be done; in JSON texts.
    #[serde(serialize_with = "messages")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub refused: Vec<Finding>,
    /// Why nothing can be done at it now, although the plan is good; in JSON a
    /// text, `reason`.
    #[serde(rename = "reason", serialize_with = "with_remedy")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub problem: Option<Finding>,
    /// Why the number of VFs stays as it is, in JSON texts; what is deferred at a
    /// VF stands there.
    #[serde(serialize_with = "as_text::list")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub deferred: Vec<Deferred>,
    /// What to know all the same.
    #[serde(skip)]
    pub warnings: Vec<Finding>,
}

impl PlanReport {
    /// An error of the plan is more than a change, and a PF that may come later is less
    /// than an error.
    fn verdict(&self) -> Verdict {
        let mut errors = self.pfs.iter().flat_map(|pf| &pf.errors);
        let mut refused = self.pfs.iter().flat_map(|pf| &pf.refused);
        if errors.any(|error| !error.code.may_pass())
            || refused.any(Finding::is_error)
            || self.rxe.iter().any(RxeReport::is_refused)
        {
            Verdict::WouldFail
        } else if self.drift || self.would_change || self.errors {
            Verdict::WouldChange
        } else {
            Verdict::NothingToDo
        }
    }

    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let of = |pf: &PlannedPf| pf.findings(None);
        let mut findings: Vec<Finding> = self.pfs.iter().flat_map(of).collect();
        let rxe = self.rxe.iter().filter(|rxe| rxe.state != RxeState::Absent);
        findings.extend(rxe.filter_map(RxeReport::finding));
        findings.extend(self.netns.iter().flat_map(Netns::contradictions));
        findings.extend(self.firmware.iter().cloned());
        Finding::worst_first(&mut findings);
        findings.extend(not_read(&self.problems));
        Report::new(Kind::Plan, self.verdict(), findings, self)
    }

    /// The same with what all of it comes to.
    #[must_use]
    pub fn judged(mut self) -> Self {
        let changes = |pf: &PlannedPf| {
            let is_kept = pf.vfs.iter().all(|vf| vf.action == Action::Keep);
            pf.problem.is_some() || !pf.refused.is_empty() || !is_kept
        };
        self.would_change = self.pfs.iter().any(changes)
            || self.rxe.iter().any(|rxe| rxe.state == RxeState::Absent)
            || self.netns.as_ref().is_some_and(Netns::differs)
            || self.firmware.iter().any(|told| told.severity == Severity::Warning);
        self.drift = self.pfs.iter().flat_map(|pf| &pf.warnings).any(|told| told.code.is_drift());
        self.errors = self.pfs.iter().any(|pf| !pf.errors.is_empty());
        self
    }
}

impl PlannedPf {
    /// What to call it where a finding is about it: its PCI address, once that is known.
    pub fn object(&self) -> Object {
        self.pci.map_or_else(|| (&self.named).into(), Object::Function)
    }

    pub fn count(&self) -> Count {
        let good = self.vfs.iter().filter(|vf| vf.action == Action::Keep).count();
        Count { good, of: self.wanted }
    }

    /// What is not as it is meant to be; `last_run` is why the last run did not change the
    /// number of VFs. Each verb says the same.
    pub fn findings(&self, last_run: Option<&str>) -> Vec<Finding> {
        let object = self.object();
        let mut findings = self.errors();
        findings.extend(self.problem.clone());
        findings.extend(self.refused.iter().cloned());
        let of = |action| self.vfs.iter().filter(move |vf| vf.action == action).map(|vf| vf.index);
        let (anew, changed) = of(Action::Change).partition(|vf| self.is_made_anew(*vf));
        let parts: [(Vec<VfIndex>, _); 4] = [
            (of(Action::Create).collect(), "to be created"),
            (changed, "to be changed"),
            (anew, "to be removed and created again"),
            (of(Action::Remove).collect(), "to be removed"),
        ];
        let wrong = parts.into_iter().filter(|(vfs, _)| !vfs.is_empty());
        let wrong = wrong.map(|(vfs, what)| format!("{} {what}", vf_ranges(vfs.into_iter())));
        let wrong: Vec<String> = wrong.collect();
        if !wrong.is_empty() {
            let with = if self.removed().next().is_some() { REMOVED_WITH } else { "" };
            let last = last_run.filter(|_| of(Action::Create).next().is_some());
            let last = last.map(|why| format!("; the last run: {why}")).unwrap_or_default();
            let message = format!("{}{with}{last}", wrong.join(", "));
            let finding = Finding::error(Code::VfNotAsPlanned, message);
            let (look, now) = (ToDo::run("ibprov plan"), ToDo::run("ibprov apply"));
            findings.push(finding.look([look]).now([now]));
        }
        let in_use = of(Action::Defer).next().is_some();
        let mut of_vfs = self.vfs.iter().filter_map(|vf| vf.deferred.as_ref());
        let only = of_vfs.next().filter(|_| of(Action::Defer).count() == 1);
        let why = self.deferred.first().or(only).map(ToString::to_string).or_else(|| {
            in_use.then(|| format!("{}: not as planned, and in use", vf_ranges(of(Action::Defer))))
        });
        findings.extend(
            why.map(|why| Finding::warning(Code::VfDeferred, why).look([ToDo::run("ibprov plan")])),
        );
        findings.extend(self.warnings.iter().cloned());
        findings.into_iter().map(|finding| finding.about(&object)).collect()
    }

    pub fn is_made_anew(&self, vf: VfIndex) -> bool {
        self.vfs.iter().any(|planned| planned.index == vf && planned.is_made_anew())
    }

    /// The VFs that would be destroyed, also those that would be created again.
    pub fn removed(&self) -> impl Iterator<Item = VfIndex> {
        let is_removed = |vf: &&PlannedVf| vf.action == Action::Remove || vf.is_made_anew();
        self.vfs.iter().filter(is_removed).map(|vf| vf.index)
    }

    /// Why no plan can be made for it.
    pub fn errors(&self) -> Vec<Finding> {
        let of = |error: &Finding| Finding {
            message: format!("{} ({})", error.message, self.origin),
            ..error.clone()
        };
        self.errors.iter().map(of).collect()
    }

    /// Something would be done, or the PF is not in a state in which it could be.
    pub const fn is_change(&self) -> bool {
        !self.steps.is_empty() || self.problem.is_some()
    }

    /// All that is deferred, of VFs too.
    pub fn all_deferred(&self) -> impl Iterator<Item = &Deferred> {
        self.deferred.iter().chain(self.vfs.iter().filter_map(|vf| vf.deferred.as_ref()))
    }

    /// Something would be done, or cannot be done.
    pub fn is_pending(&self) -> bool {
        let is_deferred = self.all_deferred().next().is_some();
        !self.is_planned || self.is_change() || is_deferred || !self.refused.is_empty()
    }
}

/// What disappears with VFs.
pub const REMOVED_WITH: &str = ", with their netdevs and RDMA devices";

/// What `ibprov plan --partitions` says.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Partitions {
    /// Lines for opensm's partitions.conf.
    pub lines: String,
}

/// What `ibprov plan --pin` says.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pinned {
    /// The file of the pins.
    pub file: String,
    pub written: bool,
    /// What it holds or would hold; `null` where nothing can be pinned.
    pub toml: Option<String>,
}

/// What `ibprov plan --seal` says.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sealed {
    /// The files with pins that were there.
    pub files: Vec<String>,
    /// They were removed, not only looked for.
    pub removed: bool,
    #[serde(skip)]
    pub left: Vec<String>,
}

impl Sealed {
    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let verdict = match (self.removed || self.files.is_empty(), self.left.is_empty()) {
            (false, _) => Verdict::WouldChange,
            (true, false) => Verdict::Exceptions,
            (true, true) => Verdict::Done,
        };
        let left = self.left.iter().map(|line| Finding::warning(Code::OneHostOnly, line));
        Report::new(Kind::PlanSeal, verdict, left.collect(), self)
    }
}
