//! What to do about a finding, as lines of a text.

use std::fmt;

use textwrap::core::display_width;

use super::screen::{RUN, Screen};
use crate::model::advice::{Advice, ToDo};
use crate::model::common::Finding;
use crate::names::counted;

/// `steps` as lines of a text, indented by `indent`.
pub fn lines<'a>(
    steps: impl IntoIterator<Item = &'a Advice>,
    indent: &str,
    screen: Screen,
) -> Vec<String> {
    let mut lines = Vec::new();
    for Advice { step: ToDo { words, command }, .. } in steps {
        if let Some(words) = words {
            lines.extend(screen.wrapped(&format!("{indent}do: "), words));
        }
        lines.extend(command.iter().map(|command| format!("{indent}{RUN}{command}")));
    }
    lines
}

/// What to do about `finding`, and where more is said of it, if more is wanted.
pub fn of(finding: &Finding, indent: &str, screen: Screen) -> Vec<String> {
    let mut lines = lines(&finding.advice, indent, screen);
    lines.extend(explained(finding.code, indent, screen));
    lines
}

/// Where more is said of `code`.
pub fn explained(code: impl fmt::Display, indent: &str, screen: Screen) -> Option<String> {
    screen.verbose.then(|| format!("{indent}see: ibprov check --explain {code}"))
}

/// The last line of a text from which so many steps and the `others` are left out.
pub fn left_out(mut others: Vec<String>, steps: usize, screen: Screen) -> Vec<String> {
    others.extend((steps > 0).then(|| counted(steps, "more step")));
    if others.is_empty() {
        return Vec::new();
    }
    let (what, more) = (others.join(", "), screen.more);
    let line = format!("{what}: {more}");
    match screen.columns {
        // A command is never broken.
        Some(columns) if display_width(&line) > columns => {
            let what = screen.wrapped("", &format!("{what}:"));
            what.into_iter().chain([format!("  {more}")]).collect()
        }
        _ => vec![line],
    }
}

/// `findings`, each with what to do.
pub fn findings<'a>(
    findings: impl IntoIterator<Item = &'a Finding>,
    indent: &str,
    screen: Screen,
) -> Vec<String> {
    let below = format!("{indent}    ");
    let one = |finding: &'a Finding| {
        [format!("{indent}{finding}")].into_iter().chain(of(finding, &below, screen))
    };
    findings.into_iter().flat_map(one).collect()
}
