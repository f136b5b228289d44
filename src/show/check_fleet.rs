//! The text of `ibprov check --fleet`.

use super::advice;
use super::screen::{self, Screen, Tone};
use crate::model::advice::{Advice, Purpose};
use crate::model::check_fleet::{CheckFleetReport, FleetFinding, NodeCounts, Unread};
use crate::model::common::Verdict;

/// Nodes that are named in text; JSON has all.
const NAMES: usize = 8;

/// The report as text.
pub fn text(report: &CheckFleetReport, screen: Screen) -> String {
    let NodeCounts { all, good, exceptions, not_ready } = report.nodes;
    let (tone, word) = match report.judge() {
        Verdict::Ready => (Tone::Good, "as expected"),
        Verdict::Exceptions => (Tone::Warning, "with exceptions"),
        Verdict::NotReady => (Tone::Bad, "NOT READY"),
        _ => (Tone::Bad, "UNKNOWN"),
    };
    let mut head = format!(
        "{word}: {}: {not_ready} not ready, {exceptions} with exceptions, {good} as expected",
        nodes(all)
    );
    if all == 0 {
        head = "UNKNOWN: no report found. Expected for each node: NAME.json (boot.json, or the output of check or status with --format json), NAME.tar.gz (collect) or a directory NAME".to_owned();
    }
    let mut lines = screen.painted(tone, "", &head);
    for finding in &report.findings {
        lines.push(String::new());
        lines.extend(screen.painted(finding.first.severity.into(), "", &finding.head(all)));
        lines.extend(screen.wrapped("  nodes: ", &finding.names()));
        let object = finding.first.object.as_ref().map(|object| format!("{object}: "));
        let example = format!("{}{}", object.unwrap_or_default(), finding.first.message);
        lines.extend(screen.wrapped(&format!("  {}: ", finding.example), &example));
        let is_look = |step: &&Advice| step.purpose != Purpose::Look;
        let steps = finding.first.advice.iter().filter(is_look);
        lines.extend(advice::lines(steps, "  ", screen));
    }
    if report.unread > 0 {
        lines.push(String::new());
    }
    for Unread { file, why } in &report.problems {
        lines.extend(screen.wrapped("", &format!("cannot read {file}: {why}")));
    }
    if let Some(more @ 1..) = report.unread.checked_sub(report.problems.len()) {
        lines.push(format!("cannot read {more} more files"));
    }
    screen::text(lines)
}

impl FleetFinding {
    /// `37 of 500 nodes: error: module-loaded-late since kernel 6.1.0-56`.
    fn head(&self, all: usize) -> String {
        let since = self.since_kernel.as_ref().map(|kernel| format!(" since kernel {kernel}"));
        let (count, severity, code) = (self.nodes.len(), self.first.severity, &self.first.code);
        format!("{count} of {}: {severity}: {code}{}", nodes(all), since.unwrap_or_default())
    }

    fn names(&self) -> String {
        let shown = self.nodes.get(..NAMES).unwrap_or(&self.nodes).join(", ");
        match self.nodes.len().saturating_sub(NAMES) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    }
}

fn nodes(count: usize) -> String {
    match count {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    }
}
