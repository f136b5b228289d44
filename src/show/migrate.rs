//! The text of `ibprov migrate`.

use super::screen::Screen;
use super::{advice, screen};
use crate::model::common::Verdict;
use crate::model::migrate::{Item, Migration, short};

pub fn text(report: &Migration, screen: Screen) -> String {
    let verdict = match report.verdict() {
        Verdict::NothingToDo if report.back => "nothing to undo",
        Verdict::NothingToDo => "nothing to do",
        Verdict::WouldChange if report.back => "the migration would be undone",
        Verdict::WouldChange => "would be migrated",
        Verdict::WouldFail => "would fail: nothing is changed",
        Verdict::Done | Verdict::Exceptions if report.back => {
            "the migration was undone; the next boot is as before"
        }
        Verdict::Done | Verdict::Exceptions => "migrated; it takes effect at the next boot",
        _ => "FAILED",
    };
    let mut lines = vec![verdict.to_owned()];
    let mut items: Vec<&Item> = report.items.iter().collect();
    items.sort_by_key(|item| item.becomes);
    for item in items {
        let place = item.place();
        let said = item.text.as_ref().map_or_else(String::new, |said| format!(" ({said})"));
        lines.push(format!("  {}: {place}{said}: {}{}", item.becomes, item.guess(), item.message));
        lines.extend(item.drop_in.iter().map(|drop_in| format!("    drop-in: {drop_in}")));
        let advice = item.reason.advice();
        lines.extend((!advice.is_empty()).then(|| format!("    do: {advice}")));
    }
    for problem in &report.problems {
        lines.push(problem.bare());
        lines.extend(advice::of(problem, "    ", screen));
    }
    if !report.changes.is_empty() {
        lines.push(if report.applied { "Changed:" } else { "Changes:" }.to_owned());
        let changes = report.changes.iter();
        lines.extend(changes.map(|change| format!("  {}", short(&change.to_string()))));
    }
    let back = if report.back { " --back" } else { "" };
    match report.verdict() {
        Verdict::WouldChange => {
            lines.push(format!("Nothing was changed. To do it: ibprov migrate{back} --apply"));
        }
        Verdict::Done | Verdict::Exceptions if !report.back => {
            lines.push("To undo it: ibprov migrate --back --apply".to_owned());
        }
        _ => {}
    }
    screen::text(lines)
}
