//! The text of `ibprov wait-online`.

use super::screen::Screen;
use super::{advice, screen};
use crate::model::common::Finding;
use crate::model::online::OnlineReport;
use crate::names::grouped;

/// What `ibprov wait-online` prints for people: ports of which the same is said in one line.
pub fn text(report: &OnlineReport, screen: Screen) -> String {
    let mut lines = vec![report.headline()];
    lines.extend(advice::findings(&report.configuration, "  ", screen));
    for (said, ports) in grouped(&report.ports, |port| port.said()) {
        let names: Vec<String> = ports.iter().map(|port| port.name()).collect();
        lines.push(format!("  {}: {said}", names.join("; ")));
        let findings: Vec<Finding> = ports.iter().flat_map(|port| report.findings(port)).collect();
        let findings = Finding::grouped(&findings);
        lines.extend(findings.iter().flat_map(|found| advice::of(found, "      ", screen)));
    }
    lines.extend(report.problems.iter().map(|problem| format!("  note: {problem}")));
    screen::text(lines)
}
