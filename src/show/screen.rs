//! How text for people is laid out: its width and its colours.

use anstyle::{AnsiColor, Style};
use textwrap::core::display_width;

use crate::model::common::Severity;

/// What a command stands behind. A line that begins so is never broken.
pub const RUN: &str = "run: ";

/// Where a text is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Screen {
    /// Its columns; without, lines are as long as they are.
    pub columns: Option<usize>,
    /// Its rows; without, nothing of a text scrolls away.
    pub rows: Option<usize>,
    /// It shows colours, and they are wanted.
    pub colour: bool,
    /// More detail is wanted.
    pub verbose: bool,
    /// The command that shows more detail.
    pub more: &'static str,
}

/// What a stretch of text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    Warning,
    Head,
    Dim,
}

impl Tone {
    const fn style(self) -> Style {
        match self {
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Head => Style::new().bold(),
            Self::Dim => Style::new().dimmed(),
        }
    }
}

impl From<Severity> for Tone {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self::Bad,
            Severity::Warning => Self::Warning,
            Severity::Info => Self::Dim,
        }
    }
}

/// `lines` as one text.
pub fn text(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().map(|line| line + "\n").collect()
}

/// `rows` as lines, in columns as wide as their widest cell.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect()
}

impl Screen {
    /// `text` in the colour of `tone`, where there is colour.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        if self.colour && !text.is_empty() {
            let style = tone.style();
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// `text` behind `first`, broken where the screen ends; what follows is indented as
    /// far as `first` reaches. Words longer than a line, such as paths, are left whole.
    pub fn wrapped(self, first: &str, text: &str) -> Vec<String> {
        self.broken(first, &" ".repeat(display_width(first)), text)
    }

    fn broken(self, first: &str, indent: &str, text: &str) -> Vec<String> {
        let Some(columns) = self.columns else { return vec![format!("{first}{text}")] };
        let options = textwrap::Options::new(columns.max(40))
            .initial_indent(first)
            .subsequent_indent(indent)
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        textwrap::wrap(text, options).into_iter().map(String::from).collect()
    }

    /// The same in the colour of `tone`.
    pub fn painted(self, tone: Tone, first: &str, text: &str) -> Vec<String> {
        self.wrapped(first, text).iter().map(|line| self.paint(tone, line)).collect()
    }

    /// `text`, each line broken where the screen ends; what follows is indented two columns
    /// further than its line. Where two blanks stand between fields, none of them is broken that
    /// fits a line.
    pub fn page(self, text: &str) -> String {
        /// Where no line is broken.
        const GLUE: &str = "\u{a0}";
        let line = |line: &str| {
            let start = line.trim_start();
            let fits = self.columns.is_none_or(|columns| display_width(line) <= columns);
            if start.starts_with(RUN) || fits {
                return vec![line.to_owned()];
            }
            let indent = &line[..line.len() - start.len()];
            let more = format!("{indent}  ");
            let room = self.columns.unwrap_or_default().saturating_sub(display_width(&more));
            let is_record = start.contains("  ");
            let field = |field: &str| match is_record && display_width(field) <= room {
                true => field.replace(' ', GLUE),
                false => field.to_owned(),
            };
            let fields: Vec<String> = start.split("  ").map(field).collect();
            let lines = self.broken(indent, &more, &fields.join("  "));
            lines.into_iter().map(|line| line.replace(GLUE, " ")).collect()
        };
        self::text(text.lines().flat_map(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words_and_only_on_a_screen() {
        let text = "the port is up, and no subnet manager has configured it: see opensm.log";
        let screen = Screen { columns: Some(40), ..Screen::default() };
        assert_eq!(
            screen.wrapped("  why: ", text),
            [
                "  why: the port is up, and no subnet",
                "       manager has configured it: see",
                "       opensm.log"
            ]
        );
        assert_eq!(Screen::default().wrapped("  why: ", text), [format!("  why: {text}")]);
    }

    #[test]
    fn a_page_breaks_long_lines_only_and_keeps_their_indent() {
        let text = "head\n  error: the port is up, and no subnet manager has configured it\n";
        let screen = Screen { columns: Some(40), ..Screen::default() };
        assert_eq!(
            screen.page(text),
            "head\n  error: the port is up, and no subnet\n    manager has configured it\n"
        );
        assert_eq!(Screen::default().page(text), text);
    }

    #[test]
    fn a_field_of_a_record_is_broken_only_where_it_is_longer_than_a_line() {
        let screen = Screen { columns: Some(40), ..Screen::default() };
        let text = "  VF 3  mlx5_core  link state follow  port 1 ACTIVE LinkUp  LID 7\n";
        let page = "  VF 3  mlx5_core  link state follow\n    port 1 ACTIVE LinkUp  LID 7\n";
        assert_eq!(screen.page(text), page);
        let long = "ib0  the port is up, and nobody has configured it\n";
        let page = "ib0  the port is up, and nobody has\n  configured it\n";
        assert_eq!(screen.page(long), page);
    }

    #[test]
    fn colour_is_put_around_text_only_where_it_is_wanted() {
        let screen = Screen { colour: true, ..Screen::default() };
        assert_eq!(screen.paint(Tone::Bad, "x"), "\u{1b}[1m\u{1b}[31mx\u{1b}[0m");
        assert_eq!(screen.paint(Tone::Bad, ""), "");
        assert_eq!(Screen::default().paint(Tone::Bad, "x"), "x");
    }
}
