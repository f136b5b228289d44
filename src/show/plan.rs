//! The texts of `ibprov plan`, and of plans in dry runs.

use super::advice;
use super::screen::{self, Screen, Tone};
use crate::model::common::Finding;
use crate::model::plan::{
    Action, Change, PlanReport, PlannedPf, PlannedVf, REMOVED_WITH, Sealed, WantedVf,
};
use crate::model::plan_fleet::FleetReport;
use crate::model::rxe::RxeReport;
use crate::model::vf_step::{left_alone, together};
use crate::names::{VfOwner, counted, grouped, vf_ranges};

/// The text for people; `all` VFs, not only those that would change.
pub fn text(report: &PlanReport, all: bool, screen: Screen) -> String {
    let mut lines = Vec::new();
    let is_empty = report.pfs.is_empty() && report.rxe.is_empty() && report.firmware.is_empty();
    if is_empty && report.netns.is_none() {
        lines.push("no [[pf]] is configured, so that there is nothing to plan".to_owned());
    }
    for pf in &report.pfs {
        lines.extend((!lines.is_empty()).then(String::new));
        lines.extend(pf.lines(all, screen));
    }
    lines.extend(report.rxe.iter().map(RxeReport::planned));
    if let Some(netns) = &report.netns {
        lines.push(netns.to_string());
        let warning = screen.paint(Tone::Warning, "warning:");
        let others = netns.contradictions();
        lines.extend(others.map(|other| format!("  {warning} {}", other.message)));
    }
    for told in &report.firmware {
        lines.push(told.to_string());
        lines.extend(advice::of(told, "  ", screen));
    }
    let cannot = screen.paint(Tone::Bad, "cannot read");
    lines.extend(report.problems.iter().map(|problem| format!("{cannot} {problem}")));
    if let Some(summary) = summary(report) {
        lines.extend([String::new(), summary]);
    }
    screen::text(lines)
}

/// What would be done to all VFs, in one line.
fn summary(report: &PlanReport) -> Option<String> {
    let counts = counts(report.pfs.iter().flat_map(|pf| &pf.vfs));
    let mut words: Vec<String> = counts.iter().map(|(n, what)| format!("{n} {what}")).collect();
    if let (Some(first), Some((n, what))) = (words.first_mut(), counts.first()) {
        *first = format!("{} {what}", counted(*n, "VF"));
    }
    let refused = report.pfs.iter().filter(|pf| !pf.errors.is_empty()).count();
    words.extend((refused > 0).then(|| format!("{} would not be applied", counted(refused, "PF"))));
    (!words.is_empty()).then(|| format!("Plan: {}", words.join(", ")))
}

/// What a dry run says of it: what it comes to, and a line for each thing that is done.
pub fn preview(planned: &PlannedPf, screen: Screen) -> Vec<String> {
    let Some(pf) = planned.pci.filter(|_| planned.is_planned) else {
        return no_change(&planned.named, &planned.origin, &planned.errors, screen);
    };
    let head = match &planned.problem {
        Some(problem) => format!("no change is possible now: {}", problem.with_remedy()),
        None if !planned.is_pending() => {
            format!("{} as planned, nothing to do", counted(planned.wanted, "VF"))
        }
        None if !planned.steps.is_empty() => "in this order:".to_owned(),
        None if planned.all_deferred().next().is_none() => "nothing to do".to_owned(),
        None => "no change is possible while VFs are in use".to_owned(),
    };
    let mut lines = vec![format!("PF {pf}: {head}")];
    let numbered = together(&planned.steps).into_iter().enumerate();
    lines.extend(numbered.map(|(at, step)| format!("  {}. {step}", at + 1)));
    let deferred = left_alone(planned.all_deferred());
    lines.extend(deferred.iter().map(|deferred| format!("  deferred: {deferred}")));
    lines.extend(told(&planned.refused, Screen { colour: false, ..screen }));
    let warnings = planned.warnings.iter();
    lines.extend(warnings.map(|told| format!("  {}: {}", told.severity, told.message)));
    lines.extend(planned.removes().map(|removes| format!("  warning: {removes}")));
    lines
}

impl PlannedPf {
    /// What apply removes, if anything.
    fn removes(&self) -> impl Iterator<Item = String> {
        let vfs = self.removed().next().map(|_| vf_ranges(self.removed()));
        vfs.map(|vfs| format!("apply removes {vfs}{REMOVED_WITH}")).into_iter()
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
        lines.extend(told(&self.refused, screen));
        lines.extend(told(&self.warnings, screen));
        lines.extend(self.removes().map(|removes| format!("  {warning} {removes}")));
        let of = |is: fn(&PlannedVf) -> bool| self.vfs.iter().filter(move |vf| is(vf));
        let anew = || of(PlannedVf::is_made_anew).map(|vf| vf.index);
        if anew().next().is_some() {
            let (mark, why) = (screen.paint(Tone::Bad, "-/+"), Change::made_anew());
            lines.push(format!("  {mark} {}: {why}", vf_ranges(anew())));
        }
        let mark = screen.paint(Tone::Warning, "!");
        let alone = self.vfs.iter().filter(|vf| vf.changes.is_empty());
        let alone = left_alone(alone.filter_map(|vf| vf.deferred.as_ref()));
        lines.extend(alone.iter().map(|deferred| format!("  {mark} {deferred}")));
        for (_, alike) in grouped(&self.vfs, |vf| vf.lines("", all, screen)) {
            let vfs = vf_ranges(alike.iter().map(|vf| vf.index));
            lines.extend(alike.first().iter().flat_map(|vf| vf.lines(&vfs, all, screen)));
        }
        let gone = || of(|vf| vf.action == Action::Remove).map(|vf| vf.index);
        if gone().next().is_some() {
            let mark = screen.paint(Tone::Bad, "-");
            lines.push(format!("  {mark} {}", vf_ranges(gone())));
        }
        lines
    }

    fn summary(&self) -> String {
        let mut words =
            vec![format!("{} planned, {} present", counted(self.wanted, "VF"), self.present)];
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

impl PlannedVf {
    /// Its lines in the text, and those of the VFs that differ in nothing but their numbers:
    /// `vfs` names them. `all` also where it is kept as it is, or created again. That it is
    /// removed or left alone is told of all such VFs together.
    fn lines(&self, vfs: &str, all: bool, screen: Screen) -> Vec<String> {
        let width = "VF 10".len().max(vfs.len()) + 1;
        let (good, warned, bad) = (
            screen.paint(Tone::Good, "+"),
            |mark| screen.paint(Tone::Warning, mark),
            screen.paint(Tone::Bad, "!"),
        );
        let whole =
            |mark: &str, wanted: &WantedVf| vec![format!("  {mark} {vfs}  {}", wanted.text())];
        match (self.action, &self.wanted) {
            (Action::Keep, Some(wanted)) if all => whole("=", wanted),
            (Action::Keep | Action::Remove, _) => Vec::new(),
            (Action::Change, Some(_)) if self.is_made_anew() && !all => Vec::new(),
            (Action::Change, Some(wanted)) if self.is_made_anew() => whole(&good, wanted),
            (Action::Block, Some(wanted)) => whole(&bad, wanted),
            (Action::Create, Some(wanted)) => whole(&good, wanted),
            _ if self.changes.is_empty() && self.deferred.is_some() => Vec::new(),
            (Action::Block | Action::Defer, _) if self.changes.is_empty() => {
                vec![format!("  {} {vfs}", warned("!"))]
            }
            (
                Action::Create | Action::Change | Action::Defer | Action::Refuse | Action::Block,
                wanted,
            ) => {
                let from = wanted.as_ref().map_or("", |w| &w.guids_from);
                let line = |(at, change): (usize, &Change)| {
                    let head = if at == 0 { vfs } else { "" };
                    let mark = match (at, self.action) {
                        (0, Action::Refuse) => bad.clone(),
                        (0, _) => warned("~"),
                        _ => " ".to_owned(),
                    };
                    let why =
                        if change.brings_guid() { format!(" ({from})") } else { String::new() };
                    format!("  {mark} {head:<width$} {change}{why}")
                };
                let deferred =
                    self.deferred.iter().map(|deferred| format!("    {:width$} {deferred}", ""));
                self.changes.iter().enumerate().map(line).chain(deferred).collect()
            }
        }
    }
}

impl WantedVf {
    fn text(&self) -> String {
        let Self {
            node_guid, port_guid, port2_guid, policy, driver, owner, guids_from, names, ..
        } = self;
        let port2 = port2_guid.map(|guid| format!(", {guid}")).unwrap_or_default();
        let mut text = format!(
            "node GUID {node_guid}  port GUID {port_guid}{port2} ({guids_from})  link state {policy}  driver {driver}"
        );
        if *owner == VfOwner::Cni {
            text.push_str("  from then on the CNI's");
        }
        if let Some(name) = &names.netdev {
            text.push_str(&format!("  netdev {name}"));
        }
        if let Some(name) = &names.rdma {
            text.push_str(&format!("  RDMA device {name}"));
        }
        text
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
        lines.extend(advice::of(finding, "    ", screen));
    }
    let more = findings.count();
    lines.extend((more > 0).then(|| format!("  and {more} more like these")));
    lines
}

/// That nothing is changed at the PF that the configuration calls `named`, because of `errors`.
pub fn no_change(named: &str, origin: &str, errors: &[Finding], screen: Screen) -> Vec<String> {
    let head = format!("{named} ({origin}): no change is possible:");
    [head].into_iter().chain(told(errors, Screen { colour: false, ..screen })).collect()
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

pub fn fleet(report: &FleetReport) -> String {
    let mut lines: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    if let Some(more @ 1..) = report.count.checked_sub(report.findings.len()) {
        lines.push(format!("and {more} more like these"));
    }
    lines.extend(report.problems.iter().map(|problem| format!("cannot read {problem}")));
    let found = match (report.hosts, report.count) {
        (0, _) => "no plan found: expected NAME.toml (pin file) or NAME.json (plan --format json) for each host".to_owned(),
        (_, 0) => "no GUID is used twice".to_owned(),
        (_, 1) => "1 conflict of GUIDs".to_owned(),
        (_, n) => format!("{n} conflicts of GUIDs"),
    };
    lines.push(format!("{} hosts, {} VFs: {found}", report.hosts, report.vfs));
    screen::text(lines)
}

pub fn sealed(report: &Sealed) -> String {
    let done = if report.removed { "removed" } else { "would be removed" };
    let mut lines: Vec<String> =
        report.files.iter().map(|file| format!("{done}: {file}")).collect();
    if report.files.is_empty() {
        lines.push("no pin file: nothing to remove".to_owned());
    }
    lines.extend(report.left.iter().map(|line| format!("to do by hand: {line}")));
    if !report.left.is_empty() {
        lines.push("not sealed: the image names one host until this is done".to_owned());
    }
    screen::text(lines)
}
