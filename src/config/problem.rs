//! What is wrong with the configuration, and where: as text with caret frames
//! and as JSON. Whatever came from a file or a file's name is made harmless
//! for a terminal here.

use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use crate::model::common::Place as ToldPlace;
use crate::names::{displayed, harmless, mark_in_lines};

/// The text of one configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The path inside the tree.
    pub path: String,
    pub text: String,
}

/// A stretch of a configuration file.
#[derive(Debug, Clone)]
pub struct Place {
    file: Arc<Source>,
    span: Range<usize>,
}

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Problem {
    message: String,
    /// The first is where it is wrong, the others belong to it.
    places: Vec<(Place, String)>,
    help: Option<String>,
    level: Level<'static>,
}

/// Everything that is wrong with the configuration, over all files.
#[derive(Debug, Clone, Default)]
pub struct Problems {
    list: Vec<Problem>,
    /// How many more there are than [`MOST`].
    pub more: usize,
    /// The files that were read, in the order in which they were applied.
    pub files: Vec<String>,
    /// The files that were ignored, each with the reason.
    pub not_read: Vec<(String, String)>,
}

/// One thing that is wrong, with texts that are harmless for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemTold {
    pub message: String,
    /// The first is where it is wrong, the others belong to it.
    pub places: Vec<ToldPlace>,
    pub help: Option<String>,
}

/// More are counted, not shown: such a file is no configuration.
const MOST: usize = 100;

/// Lines longer than this (bytes) are not shown in a frame.
const LONGEST_FRAME: usize = 4096;

/// Places at most this many lines apart share one frame.
const FRAME_LINES: usize = 5;

impl Source {
    /// The file's content as text.
    ///
    /// # Errors
    /// Where it is not UTF-8.
    pub(crate) fn new(path: String, content: Vec<u8>) -> Result<Self, Problem> {
        match String::from_utf8(content) {
            Ok(text) => Ok(Self { path, text }),
            Err(e) => {
                let at = e.utf8_error().valid_up_to();
                let bytes = e.into_bytes();
                let byte = bytes.get(at).copied().unwrap_or_default();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let place = Place::new(&Arc::new(Self { path, text }), at..at + 1);
                Err(Problem::new("the file is not UTF-8 text")
                    .at(&place, format!("byte 0x{byte:02x}"))
                    .help("save it as UTF-8"))
            }
        }
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file) && self.span == other.span
    }
}

impl Place {
    pub(crate) fn new(file: &Arc<Source>, span: Range<usize>) -> Self {
        let end = floor_boundary(&file.text, span.end);
        let start = floor_boundary(&file.text, span.start.min(end));
        Self { file: Arc::clone(file), span: start..end }
    }

    /// Path, line and column, counted from 1, the column in characters.
    fn position(&self) -> (String, usize, usize) {
        let before = self.file.text.get(..self.span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        (harmless(&self.file.path), line, column)
    }

    /// The line, counted from 1.
    pub(crate) fn line(&self) -> usize {
        self.position().1
    }

    /// The file's path, harmless for a terminal.
    pub(crate) fn path(&self) -> String {
        harmless(&self.file.path)
    }
}

// `/etc/ibprov/ibprov.toml:12`.
displayed!(Place, place => "{}:{}", place.path(), place.line());

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), places: Vec::new(), help: None, level: Level::ERROR }
    }

    /// The same, which is no error.
    pub(crate) fn warning(self) -> Self {
        Self { level: Level::WARNING, ..self }
    }

    pub(crate) fn at(mut self, place: &Place, label: impl Into<String>) -> Self {
        self.places.push((place.clone(), label.into()));
        self
    }

    /// At `place`, where something is said again that `first` has said.
    pub(crate) fn repeated(self, place: &Place, first: &Place) -> Self {
        self.at(place, "here").at(first, "and first here")
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn add_to(self, problems: &mut Problems) {
        problems.push(self);
    }

    pub(crate) fn told(&self) -> ProblemTold {
        let place = |(place, label): &(Place, String)| {
            let (file, line, column) = place.position();
            ToldPlace { file, line, column, label: harmless(label) }
        };
        ProblemTold {
            message: harmless(&self.message),
            places: self.places.iter().map(place).collect(),
            help: self.help.as_deref().map(harmless),
        }
    }

    fn render(&self, renderer: &Renderer) -> String {
        let mut elements: Vec<Element<'static>> = Vec::new();
        let mut rest: &[(Place, String)] = &self.places;
        let mut kind = AnnotationKind::Primary;
        while let Some((first, after)) = rest.split_first() {
            let near = after.iter().take_while(|(place, _)| {
                Arc::ptr_eq(&place.file, &first.0.file)
                    && place.line().abs_diff(first.0.line()) <= FRAME_LINES
            });
            let (together, others) = rest.split_at(1 + near.count());
            elements.extend(frame(together, kind));
            kind = AnnotationKind::Context;
            rest = others;
        }
        if let Some(help) = &self.help {
            elements.push(Level::HELP.message(harmless(help)).into());
        }
        let title = self.level.clone().primary_title(harmless(&self.message));
        let group =
            if elements.is_empty() { Group::with_title(title) } else { title.elements(elements) };
        renderer.render(&[group])
    }
}

/// A snippet around places that stand close together in one file.
fn frame(places: &[(Place, String)], first: AnnotationKind) -> Vec<Element<'static>> {
    let Some((place, _)) = places.first() else { return Vec::new() };
    let text = &place.file.text;
    let from = places.iter().map(|(p, _)| p.span.start).min().unwrap_or(0);
    let to = places.iter().map(|(p, _)| p.span.end).max().unwrap_or(from);
    let start = text.get(..from).and_then(|t| t.rfind('\n')).map_or(0, |at| at + 1);
    let end = text.get(to..).and_then(|t| t.find('\n')).map_or(text.len(), |at| to + at);
    let (path, line, column) = place.position();
    let window = text.get(start..end).unwrap_or_default();
    if window.len() > LONGEST_FRAME {
        let said = places.iter().filter(|(_, label)| !label.is_empty());
        let said = said.map(|(_, label)| Level::NOTE.message(harmless(label)).into());
        let origin = Origin::path(path).line(line).char_column(column).into();
        return [origin].into_iter().chain(said).collect();
    }
    // Characters that a terminal could obey become one visible mark each, so
    // that columns stay true; the spans move with them.
    let moved = |at: usize| -> usize {
        let before = window.get(..at.saturating_sub(start)).unwrap_or(window);
        before.chars().map(|c| mark_in_lines(c).len_utf8()).sum()
    };
    let line_start = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
    let mut snippet = Snippet::source(window.chars().map(mark_in_lines).collect::<String>())
        .path(path)
        .line_start(line_start)
        .fold(false);
    let mut kind = first;
    for (place, label) in places {
        let span = moved(place.span.start)..moved(place.span.end);
        let annotation = kind.span(span);
        snippet = snippet.annotation(match label.as_str() {
            "" => annotation,
            label => annotation.label(harmless(label)),
        });
        kind = AnnotationKind::Context;
    }
    vec![snippet.into()]
}

impl Problems {
    pub(crate) fn push(&mut self, problem: Problem) {
        self.push_with(|| problem);
    }

    /// The problem that `make` gives, which is not called if it would only be counted.
    pub(crate) fn push_with(&mut self, make: impl FnOnce() -> Problem) {
        if self.list.len() < MOST {
            self.list.push(make());
        } else {
            self.more += 1;
        }
    }

    /// Sorts by file, in the order in which these were applied, then by place. What has no
    /// place in a file is first.
    pub(crate) fn sort(&mut self, files: &[String]) {
        self.list.sort_by_key(|problem| {
            let place = problem.places.first().map(|(place, _)| place);
            let file = place.and_then(|place| {
                let path = place.path();
                files.iter().position(|file| *file == path)
            });
            (file, place.map(|place| place.span.start))
        });
    }

    /// The places of each that is shown.
    pub(crate) fn places(&self) -> impl Iterator<Item = impl Iterator<Item = &Place>> {
        self.list.iter().map(|problem| problem.places.iter().map(|(place, _)| place))
    }

    /// True if nothing is wrong.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many things are wrong.
    pub const fn len(&self) -> usize {
        self.list.len() + self.more
    }

    /// All of them for people, with a caret under each place.
    pub fn render(&self, colour: bool) -> String {
        let text = self.frames(colour);
        let noun = if self.len() == 1 { "error" } else { "errors" };
        format!("{text}the configuration is not valid: {} {noun}", self.len())
    }

    /// The same, without a last line.
    pub(crate) fn frames(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut text = String::new();
        for problem in &self.list {
            text.push_str(&problem.render(&renderer));
            text.push_str("\n\n");
        }
        if self.more > 0 {
            text.push_str(&format!("... and {} more\n\n", self.more));
        }
        text
    }

    /// Those that are shown, as values.
    pub fn told(&self) -> Vec<ProblemTold> {
        self.list.iter().map(Problem::told).collect()
    }
}

displayed!(Problems, problems => "{}", problems.render(false));

impl std::error::Error for Problems {}

fn floor_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn source(path: &str, text: &str) -> Arc<Source> {
        Arc::new(Source { path: path.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn columns_count_characters() {
        let file = source("/a", "x\näö = 1\n");
        let place = Place::new(&file, 7..8);
        assert_eq!(place.position(), ("/a".to_owned(), 2, 4));
        assert_eq!(place.to_string(), "/a:2");
    }

    #[test]
    fn places_far_apart_get_a_frame_each() {
        let far = format!("one = 1\n{}two = 2\n", "\n".repeat(20));
        let [a, b] = [source("/a", &far), source("/b\u{1b}[31m", "three = 3\n")];
        let two = far.find("two").expect("there");
        let problem = Problem::new("these three")
            .at(&Place::new(&a, two..two + 3), "second")
            .at(&Place::new(&a, 0..3), "first")
            .at(&Place::new(&b, 0..5), "third")
            .help("choose\u{7}");
        expect_test::expect![[r"
            error: these three
              --> /a:22:1
               |
            22 | two = 2
               | ^^^ second
               |
              ::: /a:1:1
               |
             1 | one = 1
               | --- first
               |
              ::: /b�[31m:1:1
               |
             1 | three = 3
               | ----- third
               |
               = help: choose�"]]
        .assert_eq(&problem.render(&Renderer::plain()));
    }

    proptest! {
        #[test]
        fn no_text_and_no_span_panics_or_reaches_the_terminal(
            text in "(?s).{0,60}", path in "(?s).{0,10}", a in 0_usize..70, b in 0_usize..70,
            c in 0_usize..70,
        ) {
            let file = source(&path, &text);
            let mut problems = Problems::default();
            let [one, two] = [a..b, c..c].map(|span| Place::new(&file, span));
            problems.push(Problem::new(text.clone()).at(&one, text.clone()).at(&two, "").help(text));
            let shown = problems.render(false);
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{:?}", shown);
            let _told = problems.told();
        }
    }
}
