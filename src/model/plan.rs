//! `ibprov plan`: what the VFs shall be, what would change, and why.

use serde::Serialize;

use super::advice::{Advice, ToDo};
use super::common::{
    Code, Finding, Kind, Report, Severity, Verdict, as_text, not_read, with_remedy,
};
use super::netns::Netns;
use super::node::Count;
use super::pf::Deferred;
use super::refusal::Refusal;
use super::rxe::{RxeReport, RxeState};
use super::screen::{self, Screen, Tone};
use super::vf_step::{VfStep, together};
use crate::names::{Binding, Guid, Object, PciAddress, RdmaName, VfIndex, vf_ranges};

pub use super::planned_vf::{Action, Change, PlannedAs, PlannedVf};
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
    /// What would be done, in this order; by VF it is in `vfs`.
    pub steps: Vec<VfStep>,
    /// A plan can be made for it: it has no errors.
    pub is_planned: bool,
    /// Errors, because of which it would be left alone.
    #[serde(skip)]
    pub errors: Vec<Finding>,
    /// What does not come about, whatever would be done; in JSON texts.
    #[serde(serialize_with = "as_text::list")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub refused: Vec<Refusal>,
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
            || refused.any(Refusal::is_error)
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
    pub fn told(&self) -> Report<&Self> {
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

    /// The text for people; `all` VFs, not only those that would change.
    pub fn to_text(&self, all: bool, screen: Screen) -> String {
        let mut lines = Vec::new();
        let is_empty = self.pfs.is_empty() && self.rxe.is_empty() && self.firmware.is_empty();
        if is_empty && self.netns.is_none() {
            lines.push("no [[pf]] is configured, so that there is nothing to plan".to_owned());
        }
        for pf in &self.pfs {
            lines.extend((!lines.is_empty()).then(String::new));
            lines.extend(pf.lines(all, screen));
        }
        lines.extend(self.rxe.iter().map(RxeReport::planned));
        if let Some(netns) = &self.netns {
            lines.push(netns.to_string());
            let warning = screen.paint(Tone::Warning, "warning:");
            let others = netns.contradictions();
            lines.extend(others.map(|other| format!("  {warning} {}", other.message)));
        }
        for told in &self.firmware {
            lines.push(told.to_string());
            lines.extend(Advice::lines(&told.advice, "  ", screen));
        }
        let cannot = screen.paint(Tone::Bad, "cannot read");
        lines.extend(self.problems.iter().map(|problem| format!("{cannot} {problem}")));
        if let Some(summary) = self.summary() {
            lines.extend([String::new(), summary]);
        }
        screen::text(lines)
    }

    /// What would be done to all VFs, in one line.
    fn summary(&self) -> Option<String> {
        let counts = counts(self.pfs.iter().flat_map(|pf| &pf.vfs));
        let mut words: Vec<String> = counts.iter().map(|(n, what)| format!("{n} {what}")).collect();
        if let (Some(first), Some((n, what))) = (words.first_mut(), counts.first()) {
            *first = format!("{} {what}", vfs(*n));
        }
        let refused = self.pfs.iter().filter(|pf| !pf.errors.is_empty()).count();
        words.extend((refused > 0).then(|| {
            let pfs = if refused == 1 { "1 PF".to_owned() } else { format!("{refused} PFs") };
            format!("{pfs} would not be applied")
        }));
        (!words.is_empty()).then(|| format!("Plan: {}", words.join(", ")))
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
        findings.extend(self.refused.iter().map(|refusal| refusal.finding.clone()));
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
            let advice =
                [Advice::look(ToDo::run("ibprov plan")), Advice::now(ToDo::run("ibprov apply"))];
            findings.push(Finding::error(Code::VfNotAsPlanned, message).advise(advice));
        }
        let in_use = of(Action::Defer).next().is_some();
        let mut of_vfs = self.vfs.iter().filter_map(|vf| vf.deferred.as_ref());
        let only = of_vfs.next().filter(|_| of(Action::Defer).count() == 1);
        let why = self.deferred.first().or(only).map(ToString::to_string).or_else(|| {
            in_use.then(|| format!("{}: not as planned, and in use", vf_ranges(of(Action::Defer))))
        });
        findings.extend(why.map(|why| {
            Finding::warning(Code::VfDeferred, why).advise([Advice::look(ToDo::run("ibprov plan"))])
        }));
        findings.extend(self.warnings.iter().cloned());
        findings.into_iter().map(|finding| finding.about(&object)).collect()
    }

    fn is_made_anew(&self, vf: VfIndex) -> bool {
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
    fn all_deferred(&self) -> impl Iterator<Item = &Deferred> {
        self.deferred.iter().chain(self.vfs.iter().filter_map(|vf| vf.deferred.as_ref()))
    }

    /// Something would be done, or cannot be done.
    pub fn is_pending(&self) -> bool {
        let is_deferred = self.all_deferred().next().is_some();
        !self.is_planned || self.is_change() || is_deferred || !self.refused.is_empty()
    }

    /// What a dry run says of it: what it comes to, and a line for each thing that is done.
    pub fn preview(&self) -> Vec<String> {
        let Some(pf) = self.pci.filter(|_| self.is_planned) else {
            return no_change(&self.named, &self.origin, &self.errors);
        };
        let head = match &self.problem {
            Some(problem) => format!("no change is possible now: {}", problem.with_remedy()),
            None if !self.is_pending() => format!(
                "{} {} as planned, nothing to do",
                self.wanted,
                if self.wanted == 1 { "VF" } else { "VFs" }
            ),
            None if !self.steps.is_empty() => "in this order:".to_owned(),
            None if self.all_deferred().next().is_none() => "nothing to do".to_owned(),
            None => "no change is possible while VFs are in use".to_owned(),
        };
        let mut lines = vec![format!("PF {pf}: {head}")];
        let numbered = together(&self.steps).into_iter().enumerate();
        lines.extend(numbered.map(|(at, step)| format!("  {}. {step}", at + 1)));
        lines.extend(self.all_deferred().map(|deferred| format!("  deferred: {deferred}")));
        lines.extend(told(self.refused.iter().map(|refusal| &refusal.finding), Screen::default()));
        let warnings = self.warnings.iter();
        lines.extend(warnings.map(|told| format!("  {}: {}", told.severity, told.message)));
        lines
    }

    fn lines(&self, all: bool, screen: Screen) -> Vec<String> {
        let place = match (self.pci, &self.rdma) {
            (Some(pci), Some(rdma)) => format!("PF {pci} {rdma}"),
            (Some(pci), None) => format!("PF {pci}"),
            (None, _) => self.named.clone(),
        };
        let place = screen.paint(Tone::Head, &place);
        let mut lines = vec![format!("{place} ({})", self.origin)];
        lines.push(if self.errors.is_empty() {
            format!("  {}", self.summary())
        } else {
            format!("  {}", screen.paint(Tone::Bad, "would not be applied:"))
        });
        if let Some(bind) = self.bind.filter(|bind| self.wanted > 0 && bind.is_on_host()) {
            lines.push(format!("  VFs are bound {bind}"));
        }
        if let Some(problem) = &self.problem {
            let head = screen.paint(Tone::Bad, "no change is possible:");
            lines.push(format!("  {head} {}", problem.with_remedy()));
        }
        let head = screen.paint(Tone::Warning, "deferred:");
        lines.extend(self.deferred.iter().map(|deferred| format!("  {head} {deferred}")));
        let warning = screen.paint(Tone::Warning, "warning:");
        lines.extend(told(&self.errors, screen));
        lines.extend(told(self.refused.iter().map(|refusal| &refusal.finding), screen));
        lines.extend(told(&self.warnings, screen));
        if self.removed().next().is_some() {
            let vfs = vf_ranges(self.removed());
            lines.push(format!("  {warning} apply removes {vfs}{REMOVED_WITH}"));
        }
        let of = |is: fn(&PlannedVf) -> bool| self.vfs.iter().filter(move |vf| is(vf));
        let anew = || of(PlannedVf::is_made_anew).map(|vf| vf.index);
        if anew().next().is_some() {
            let (mark, why) = (screen.paint(Tone::Bad, "-/+"), Change::made_anew());
            lines.push(format!("  {mark} {}: {why}", vf_ranges(anew())));
        }
        lines.extend(self.vfs.iter().flat_map(|vf| vf.lines(all, screen)));
        let gone = || of(|vf| vf.action == Action::Remove).map(|vf| vf.index);
        if gone().next().is_some() {
            let mark = screen.paint(Tone::Bad, "-");
            lines.push(format!("  {mark} {}", vf_ranges(gone())));
        }
        lines
    }

    fn summary(&self) -> String {
        let mut words = vec![format!("{} planned, {} present", vfs(self.wanted), self.present)];
        words.extend(counts(&self.vfs).iter().map(|(n, what)| format!("{n} {what}")));
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

fn told<'a>(findings: impl IntoIterator<Item = &'a Finding>, screen: Screen) -> Vec<String> {
    let mut findings = findings.into_iter();
    let mut lines = Vec::new();
    for finding in findings.by_ref().take(MOST_LINES) {
        let tone = finding.severity.into();
        let head = screen.paint(tone, &format!("{}:", finding.severity));
        lines.push(format!("  {head} {}", finding.message));
        lines.extend(Advice::lines(&finding.advice, "    ", screen));
    }
    let more = findings.count();
    lines.extend((more > 0).then(|| format!("  and {more} more like these")));
    lines
}

/// That nothing is changed at the PF that the configuration calls `named`, because of `errors`.
pub(super) fn no_change(named: &str, origin: &str, errors: &[Finding]) -> Vec<String> {
    let head = format!("{named} ({origin}): no change is possible:");
    [head].into_iter().chain(told(errors, Screen::default())).collect()
}

/// How many of `vfs` there are of each kind.
fn counts<'a>(vfs: impl IntoIterator<Item = &'a PlannedVf>) -> Vec<(usize, String)> {
    let vfs: Vec<&PlannedVf> = vfs.into_iter().collect();
    let of = |action| vfs.iter().filter(|vf| vf.action == action).count();
    let anew = vfs.iter().filter(|vf| vf.is_made_anew()).count();
    let bound_again = vfs.iter().filter(|vf| vf.is_bound_again()).count();
    let change = match bound_again {
        0 => "to change".to_owned(),
        n => format!("to change ({n} of them bound again)"),
    };
    let parts = [
        (of(Action::Create), "to create"),
        (of(Action::Change) - anew, &change),
        (anew, "to remove and create again"),
        (of(Action::Remove), "to remove"),
        (of(Action::Defer), "deferred"),
        (of(Action::Refuse), "not as planned"),
        (of(Action::Block), "not possible to change now"),
        (of(Action::Keep), "as planned"),
    ];
    parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| (n, what.to_owned())).collect()
}

/// What disappears with VFs.
const REMOVED_WITH: &str = ", with their netdevs and RDMA devices";

fn vfs(count: usize) -> String {
    if count == 1 { "1 VF".to_owned() } else { format!("{count} VFs") }
}
