//! The text of `ibprov consumers`.

use super::advice;
use super::screen::{self, Screen};
use crate::model::consumers::{ConsumersReport, Order};
use crate::names::PathState;

pub fn text(report: &ConsumersReport, screen: Screen) -> String {
    let mut lines = Vec::new();
    match (&report.provider, report.consumers.len()) {
        (None, _) => lines.push(report.no_provider().to_owned()),
        (Some(provider), 0) => {
            lines.push(format!("no unit of the next boot is known to use InfiniBand; the ports are brought up by {provider}"));
        }
        (Some(provider), all) => {
            let after = report.consumers.iter().filter(|c| c.order == Order::After).count();
            lines.push(format!("{after} of {all} units that use InfiniBand come after {provider}"));
        }
    }
    let width = report.consumers.iter().map(|c| c.unit.len()).max().unwrap_or(0);
    for consumer in &report.consumers {
        let said = match consumer.order {
            Order::After => "after the ports".to_owned(),
            Order::Missing => format!("NOT ORDERED: {}", consumer.need.harm()),
            Order::Before => format!("BEFORE the ports, over {}", consumer.path.join(" > ")),
        };
        let mark = if consumer.order == Order::After { ' ' } else { '!' };
        lines.push(format!("{mark} {:width$}  {said}", consumer.unit));
    }
    for problem in &report.problems {
        lines.push(problem.bare());
        lines.extend(advice::explained(problem.code, "  ", screen));
    }
    if !report.changes.is_empty() {
        lines.push(if report.applied { "Changed:" } else { "Changes:" }.to_owned());
        for change in &report.changes {
            lines.push(format!("  {change}"));
            if let PathState::File { text, .. } = &change.after {
                lines.extend(text.lines().map(|line| format!("    {line}")));
            }
        }
    } else if report.consumers.iter().any(|c| c.order == Order::Missing) {
        lines.push("To order them: ibprov consumers --install".to_owned());
    }
    screen::text(lines)
}
