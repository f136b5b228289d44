//! The text of `ibprov apply` for one PF.

use super::advice;
use super::plan::no_change;
use super::screen::{self, Screen};
use crate::model::common::Code;
use crate::model::pf::{PfReport, Purpose, Unresolved};
use crate::model::vf_step::left_alone;
use crate::names::vf_ranges;

/// The text of it without the VFs, which have journal entries of their own.
pub fn summary(report: &PfReport) -> String {
    around(report, Vec::new()).join("\n")
}

pub fn text(report: &PfReport, screen: Screen) -> String {
    let mut vfs = Vec::new();
    for same in report.wrong() {
        let Some(first) = same.first() else { continue };
        vfs.push(match same.len() {
            1 => format!("  {}", first.line()),
            _ => format!("  {}: {}", vf_ranges(same.iter().map(|vf| vf.vf)), first.said()),
        });
        let code = first.cause.as_ref().map_or(Code::VfNotAsPlanned, |cause| cause.code);
        vfs.extend(advice::explained(code, "    ", screen));
    }
    screen::text(around(report, vfs))
}

/// The lines of it, with those of the VFs in their place.
fn around(report: &PfReport, vfs: Vec<String>) -> Vec<String> {
    let mut lines = vec![report.headline()];
    // What puts back says it in the line above.
    let problem = report.problem.as_ref().filter(|_| report.purpose == Purpose::Apply);
    lines.extend(problem.map(|problem| format!("  why: {}", problem.with_remedy())));
    lines.extend(vfs);
    let deferred = left_alone(&report.deferred);
    lines.extend(deferred.iter().map(|deferred| format!("  deferred: {deferred}")));
    lines.extend(report.problems.iter().map(|problem| format!("  note: {problem}")));
    lines
}

pub fn unresolved(pf: &Unresolved, screen: Screen) -> Vec<String> {
    no_change(&pf.which, &pf.origin, &pf.errors, screen)
}
