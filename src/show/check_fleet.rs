//! The text of `ibprov check --fleet`.

use super::advice;
use super::screen::{self, Screen, Tone};
use crate::model::check_fleet::{CheckFleetReport, FleetFinding, NodeCounts, Unread};
use crate::model::common::Verdict;
use crate::names::{counted, first};

/// Nodes that are named in text; JSON has all.
const NAMES: usize = 8;

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
        counted(all, "node")
    );
    if all == 0 {
        head = "UNKNOWN: no report found. Expected for each node: NAME.json (boot.json, or the output of check or status with --format json), NAME.tar.gz (collect) or a directory NAME".to_owned();
    }
    let mut lines = screen.painted(tone, "", &head);
    for finding in &report.findings {
        lines.push(String::new());
        lines.extend(screen.painted(finding.first.severity.into(), "", &finding.head(all)));
        lines.extend(screen.wrapped("  nodes: ", &first(&finding.nodes, NAMES)));
        let object = finding.first.object.as_ref().map(|object| format!("{object}: "));
        let example = format!("{}{}", object.unwrap_or_default(), finding.first.message);
        lines.extend(screen.wrapped(&format!("  {}: ", finding.example), &example));
        lines.extend(advice::lines(&finding.first.advice, "  ", screen));
        lines.extend(advice::explained(&finding.first.code, "  ", screen));
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
        format!(
            "{count} of {}: {severity}: {code}{}",
            counted(all, "node"),
            since.unwrap_or_default()
        )
    }
}
