//! The text of `ibprov apply` for one PF.

use super::plan::no_change;
use super::screen;
use crate::model::pf::{PfReport, Purpose, Unresolved};
use crate::names::vf_ranges;

/// The text of it without the VFs, which have journal entries of their own.
pub fn summary(report: &PfReport) -> String {
    let is_vf = |line: &&str| !line.starts_with("  VF ") && !line.starts_with("  VFs ");
    text(report).lines().filter(is_vf).collect::<Vec<_>>().join("\n")
}

/// The text of it.
pub fn text(report: &PfReport) -> String {
    let mut lines = vec![report.headline()];
    // What puts back says it in the line above.
    let problem = report.problem.as_ref().filter(|_| report.purpose == Purpose::Apply);
    lines.extend(problem.map(|problem| format!("  why: {}", problem.with_remedy())));
    lines.extend(report.wrong().into_iter().map(|(vf, same)| match same.as_slice() {
        [_] => format!("  {}", vf.line()),
        same => format!("  {}: {}", vf_ranges(same.iter().map(|vf| vf.vf)), vf.said()),
    }));
    lines.extend(report.deferred.iter().map(|deferred| format!("  deferred: {deferred}")));
    lines.extend(report.problems.iter().map(|problem| format!("  note: {problem}")));
    screen::text(lines)
}

/// The text of it.
pub fn unresolved(pf: &Unresolved) -> Vec<String> {
    no_change(&pf.which, &pf.origin, &pf.errors)
}
