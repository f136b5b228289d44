//! What to do about a finding, as lines of a text.

use super::screen::{self, RUN, Screen};
use crate::model::advice::{Advice, ToDo};
use crate::model::common::Finding;

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

/// A finding of the host, with what to do.
pub fn finding(finding: &Finding) -> String {
    let advice = lines(&finding.advice, "    ", Screen::default());
    screen::text(std::iter::once(finding.to_string()).chain(advice))
}
