//! The texts of `ibprov boot --dry-run` and `ibprov iface --dry-run`.

use super::screen::{self, Screen};
use super::{advice, plan};
use crate::model::boot::LeftOut;
use crate::model::common::{Code, Finding};
use crate::model::netns::Netns;
use crate::model::preview::{IfacePreview, Preview, Settings};
use crate::model::rxe::{RxeReport, RxeState};
use crate::model::stack::View;
use crate::model::{Cause, PortProgress};
use crate::names::{IfName, Rung, grouped};

/// The text of it: what would be done, in this order, and what would not.
pub fn text(report: &Preview, screen: Screen) -> String {
    let mut stages = vec![report.loads(), report.creates(), report.waits(), report.sets()];
    let (pending, done): (Vec<_>, Vec<_>) = report.pfs.pfs.iter().partition(|pf| pf.is_pending());
    stages.extend(pending.into_iter().map(|pf| plan::preview(pf, screen)));
    stages.retain(|stage| !stage.is_empty());
    let is_complete = report.ports.iter().all(PortProgress::is_ready);
    let head = match (stages.is_empty(), report.ports.is_empty()) {
        (false, _) => "boot would, in this order:",
        (true, true) => "boot would change nothing: no InfiniBand port is expected",
        (true, false) if is_complete => "boot would change nothing and not wait",
        (true, false) if report.is_deferred() => {
            "boot would change nothing: what is not as configured is in use"
        }
        (true, false) => {
            "boot would change nothing and not wait: the missing ports cannot become ready (see the errors)"
        }
    };
    let mut lines = vec![head.to_owned()];
    for (at, stage) in stages.iter().enumerate() {
        let number = format!("{}. ", at + 1);
        for (line, first) in stage.iter().zip([true].into_iter().chain(std::iter::repeat(false))) {
            let indent = if first { number.clone() } else { " ".repeat(number.len()) };
            lines.push(format!("{indent}{line}"));
        }
    }
    for port in report.ports.iter().filter(|port| port.is_ready() && !port.is_ethernet()) {
        let netdev = port.netdev.as_ref().map(|netdev| format!(" as {netdev}"));
        // Boot does not wait for its link: what it has reached is said.
        let reached = port.reached.unwrap_or(port.goal);
        lines.push(format!("{reached}: {}{}", port.label(), netdev.unwrap_or_default()));
    }
    for pf in done {
        lines.extend(plan::preview(pf, screen));
    }
    lines.extend(report.denied.iter().map(Finding::sentence));
    let told = report.rxe.iter().filter(|rxe| rxe.state != RxeState::Absent);
    lines.extend(told.map(ToString::to_string));
    lines.extend(report.refused());
    lines.extend(report.deferred());
    lines.extend(report.not_waited_for());
    for finding in &report.contradictions {
        lines.push(finding.to_string());
        lines.extend(advice::explained(finding.code, "  ", screen));
    }
    lines.extend(report.problems.iter().map(|problem| format!("warning: cannot read {problem}")));
    let others = report.netns.iter().flat_map(Netns::contradictions);
    lines.extend(others.map(|other| format!("warning: {}", other.message)));
    lines.push(String::new());
    lines.join("\n")
}

impl Preview {
    fn loads(&self) -> Vec<String> {
        match self.steps.as_slice() {
            [step] => vec![step.to_string()],
            [] => Vec::new(),
            steps => {
                let steps = steps.iter().map(|step| format!("  {step}"));
                ["in parallel:".to_owned()].into_iter().chain(steps).collect()
            }
        }
    }

    fn creates(&self) -> Vec<String> {
        let created = self.rxe.iter().filter(|rxe| rxe.state == RxeState::Absent);
        let line = |rxe: &RxeReport| {
            let netdev = rxe.netdev.as_ref()?;
            Some(format!("create the soft RoCE device {} on {netdev}", rxe.name))
        };
        created.filter_map(line).collect()
    }

    fn waits(&self) -> Vec<String> {
        let is_final = |cause: Option<&Cause>| cause.is_some_and(|cause| cause.is_final);
        let waited = self.with_causes();
        let waited = waited.filter(|(port, cause)| !port.is_ready() && !is_final(*cause));
        let mut lines: Vec<String> = waited
            .map(|(port, _)| {
                let optional = if port.optional { " (optional)" } else { "" };
                let state = port.missing().map_or("", Rung::lacking);
                format!("  {}{optional}: {state}; expected state: {}", port.label(), port.goal)
            })
            .collect();
        if !lines.is_empty() {
            lines.insert(0, format!("wait up to {} s for each adapter:", self.timeout_sec));
        }
        lines
    }

    fn sets(&self) -> Vec<String> {
        let set = |set: &Settings| {
            let steps: Vec<String> = set.steps.iter().map(ToString::to_string).collect();
            (!steps.is_empty()).then(|| {
                format!("{}: {} ({})", set.netdev, steps.join(", "), set.origins.join(", "))
            })
        };
        self.settings.iter().filter_map(set).collect()
    }

    /// What is asked for of interfaces and cannot be.
    fn refused(&self) -> Vec<String> {
        let refused = Cause::sentences(self.settings.iter().flat_map(|set| &set.refused));
        refused.iter().map(|why| format!("error: {why}")).collect()
    }

    /// What would be left undone, because it is in use.
    fn deferred(&self) -> Vec<String> {
        let set = |set: &Settings| {
            Some(format!("deferred: {}", set.deferred.as_ref()?.with_command(&set.netdev)))
        };
        self.settings.iter().filter_map(set).collect()
    }

    /// One line for each reason.
    fn not_waited_for(&self) -> Vec<String> {
        let is_told = |port: &PortProgress| {
            let of_it = |set: &&Settings| Some(&set.netdev) == port.netdev.as_ref();
            let set = self.settings.iter().find(of_it);
            set.is_some_and(|set| set.deferred.is_some() || !set.refused.is_empty())
        };
        let hopeless = self.hopeless().filter(|(port, _)| !port.is_ready() && !is_told(port));
        let hopeless =
            hopeless.map(|(port, why)| format!("not waited for: {}: {}", port.label(), why.text));
        let mut lines: Vec<String> = hopeless.collect();
        let reasons = grouped(&self.left_out, |left_out| &left_out.reason);
        lines.extend(reasons.iter().filter_map(|(reason, functions)| {
            let LeftOut { pci, .. } = functions.first()?;
            let more = match functions.len() - 1 {
                0 => String::new(),
                n => format!(" and {n} more functions"),
            };
            Some(format!("not waited for: {pci}{more}: {reason}"))
        }));
        lines
    }
}

pub fn iface(report: &IfacePreview, name: &IfName, settings_only: bool, screen: Screen) -> String {
    let mut lines = Vec::new();
    let origins = report.wanted.origins.join(", ");
    if origins.is_empty() {
        lines.push(format!("{name}: no settings are configured"));
    } else if report.steps.is_empty() && !report.is_refused() && report.deferred.is_none() {
        lines.push(format!("{name}: all settings are as configured ({origins})"));
    } else {
        lines.push(format!("{name}: settings of {origins}:"));
        lines.extend(report.steps.iter().map(|step| format!("  would {step}")));
    }
    let deferred = report.deferred.iter().map(|deferred| deferred.with_command(name));
    lines.extend(deferred.map(|deferred| format!("  deferred: {deferred}")));
    let others = report.findings.iter().filter(|f| f.code != Code::SettingDeferred);
    for finding in others {
        lines.push(finding.to_string());
        lines.extend(advice::of(finding, "  ", screen));
    }
    lines.extend(report.notes.iter().map(|note| format!("note: {note}")));
    lines.extend(View::lines(&report.stacks));
    match (&report.decision, &report.asked_by) {
        (Some(decision), Some(way)) => {
            lines.push(format!("decision: {}: {}", decision.action, decision.why));
            lines.push(format!("queried by: {way}"));
        }
        _ if settings_only => {}
        _ => lines.push(
            "decision: unknown, because the decision depends on the state of units, and no systemd runs in a copied tree".to_owned(),
        ),
    }
    screen::text(lines)
}
