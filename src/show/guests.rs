//! The text of `ibprov guests`.

use super::screen::Screen;
use super::{advice, screen};
use crate::model::guests::{GuestsReport, Phase};

/// What `ibprov guests` prints for people.
pub fn text(report: &GuestsReport, screen: Screen) -> String {
    if report.guests.is_empty() {
        return "no guests are configured\n".to_owned();
    }
    let up = report.guests.iter().filter(|g| matches!(g.phase, Phase::Up { .. })).count();
    let mut lines = vec![format!("{up} of {} guests up", report.guests.len())];
    for guest in &report.guests {
        lines.push(format!("  {} {}: {}", guest.kind, guest.name, report.state(guest)));
        lines.extend(guest.vfs.iter().flatten().map(|vf| {
            let reached = vf.reached.map_or("absent", |rung| rung.word());
            let how = vf.lacks.as_deref().unwrap_or("right");
            format!("      {}: {reached}: {how}", vf.label())
        }));
    }
    lines.extend(advice::findings(&report.account, "  ", screen));
    lines.extend(report.problems.iter().map(|problem| format!("  note: {problem}")));
    screen::text(lines)
}
