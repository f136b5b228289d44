//! The text of `ibprov wait-online`.

use super::screen::Screen;
use super::{advice, screen};
use crate::model::Cause;
use crate::model::online::OnlineReport;

/// What `ibprov wait-online` prints for people.
pub fn text(report: &OnlineReport) -> String {
    let mut lines = vec![report.headline()];
    for error in &report.configuration {
        lines.push(format!("  {error}"));
        lines.extend(advice::lines(&error.advice, "      ", Screen::default()));
    }
    for port in &report.ports {
        lines.push(format!("  {}", port.line()));
        let causes = port.cause.iter().flat_map(Cause::all);
        let steps = causes.flat_map(|cause| &cause.advice);
        lines.extend(advice::lines(steps, "      ", Screen::default()));
    }
    lines.extend(report.problems.iter().map(|problem| format!("  note: {problem}")));
    screen::text(lines)
}
