//! One file's text into a [`Draft`]: keys known, values of their type, each
//! with its place. Nothing is judged across keys or files here.

use crate::names::harmless;
use std::any::Any;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::keys::{self, Found, KEYS, Key, Kind, Name, Renamed, Tables, type_name};
use super::problem::{Place, Problem, Problems, Source};
use super::value::Value;

/// Longer lists are refused: they would only cost time.
const LONGEST_LIST: usize = 1000;

/// What one file gives.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) given: Vec<(&'static Key, Given)>,
    /// Keys that were given badly: nothing may be concluded from their absence.
    pub(crate) broken: BTreeSet<&'static str>,
}

/// What is given for one key.
#[derive(Debug, Clone)]
pub(crate) enum Given {
    One(Item),
    /// Empty takes away what weaker files gave; then the place is that of the
    /// empty list, `None` if it is the default's.
    List(Vec<Item>, Option<Place>),
    Tables(Vec<Row>, Option<Place>),
}

/// A value, and where it was given; a default has no place.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) value: Value,
    pub(crate) place: Option<Place>,
}

/// One table of a list of tables.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) place: Place,
    pub(crate) fields: Vec<(&'static Key, Given)>,
    /// Keys that were given badly.
    broken: BTreeSet<&'static str>,
    /// A key was unknown: any other may have been meant.
    unknown: bool,
}

impl Item {
    /// The value, if it is of this type.
    pub(crate) fn get<T: Any + Clone>(&self) -> Option<T> {
        self.value.get()
    }
}

impl Row {
    /// What is given for the key of that name.
    fn given(&self, name: &str) -> Option<&Given> {
        self.fields.iter().find(|(key, _)| key.path == name).map(|(_, given)| given)
    }

    /// The field of that name, with its place.
    pub(crate) fn field<T: Any + Clone>(&self, name: Name<T>) -> Option<(T, &Place)> {
        let Given::One(item) = self.given(&name)? else { return None };
        Some((item.get()?, item.place.as_ref().unwrap_or(&self.place)))
    }

    /// The list of that name, with its place; `None` if it is not given.
    pub(crate) fn list<T: Any + Clone>(&self, name: Name<T>) -> Option<(Vec<T>, &Place)> {
        let Given::List(items, place) = self.given(&name)? else { return None };
        let values = items.iter().filter_map(Item::get).collect();
        Some((values, place.as_ref().unwrap_or(&self.place)))
    }

    /// What is given for a key that holds one or more, each with its place.
    pub(crate) fn each<T: Any + Clone>(&self, name: Name<T>) -> Vec<(T, &Place)> {
        let items = match self.given(&name) {
            Some(Given::One(item)) => std::slice::from_ref(item),
            Some(Given::List(items, _)) => items,
            Some(Given::Tables(..)) | None => &[],
        };
        let with_place = |item: &'_ Item| item.get();
        items
            .iter()
            .filter_map(|item| {
                Some((with_place(item)?, item.place.as_ref().unwrap_or(&self.place)))
            })
            .collect()
    }

    /// None of these keys is given, nor was one tried to be given.
    pub(crate) fn lacks(&self, names: &[&str]) -> bool {
        !self.unknown
            && !names.iter().any(|name| self.given(name).is_some() || self.broken.contains(name))
    }

    /// A key of this row was given badly.
    pub(crate) fn is_broken(&self) -> bool {
        self.unknown || !self.broken.is_empty()
    }

    /// The tables of that name.
    pub(crate) fn tables(&self, name: Name<Tables>) -> &[Self] {
        match self.given(&name) {
            Some(Given::Tables(rows, _)) => rows,
            _ => &[],
        }
    }
}

/// Reads one file, noting everything that is wrong with it.
pub(crate) fn read(file: &Arc<Source>, problems: &mut Problems) -> Draft {
    let (table, errors) = DeTable::parse_recoverable(&file.text);
    let mut reader = DraftReader { file, found: Vec::new(), draft: Draft::default() };
    reader.section(KEYS, "", table.get_ref());
    let DraftReader { mut found, draft, .. } = reader;

    // One slip in the syntax makes followers: the first of a line is said, and
    // what was recovered from that line is not judged.
    let mut bad_lines = BTreeSet::new();
    let mut syntax: Vec<_> =
        errors.iter().map(|e| (e.span().unwrap_or(0..0), e.message())).collect();
    let starts = LineStarts::of(&file.text);
    // Stable: the parser's own words come before those of what follows from it.
    syntax.sort_by_key(|(span, _)| starts.line(span.start));
    syntax.retain(|(span, _)| bad_lines.insert(starts.line(span.start)));
    found.retain(|(span, _)| !bad_lines.contains(&starts.line(span.start)));
    found.extend(syntax.into_iter().map(|(span, message)| {
        let place = Place::new(file, span.clone());
        let problem = Problem::new("TOML syntax").at(&place, message);
        (span, Box::new(|| problem) as Make)
    }));
    found.sort_by_key(|(span, _)| span.start);
    for (_, problem) in found {
        problems.push_with(problem);
    }
    draft
}

/// Makes a problem if it is shown: of thousands of unknown keys each would search for the key
/// that is meant.
type Make = Box<dyn FnOnce() -> Problem>;

/// Where the lines of a text begin, for many look-ups.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at + 1).collect())
    }

    fn line(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at)
    }
}

/// A key's default, read by the same door.
pub(crate) fn default_of(key: &'static Key) -> Option<Given> {
    let value = DeValue::parse(key.default).ok()?;
    let item = |value: &DeValue<'_>| key.kind.read(value).ok().map(bare);
    match (&key.kind, value.get_ref()) {
        (Kind::Tables(_), _) => Some(Given::Tables(Vec::new(), None)),
        (Kind::Words(_), DeValue::Array(items)) => {
            let items = items.iter().map(|value| item(value.get_ref())).collect::<Option<_>>()?;
            Some(Given::List(items, None))
        }
        (_, value) => item(value).map(Given::One),
    }
}

const fn bare(value: Value) -> Item {
    Item { value, place: None }
}

struct DraftReader<'a> {
    file: &'a Arc<Source>,
    found: Vec<(Range<usize>, Make)>,
    draft: Draft,
}

impl DraftReader<'_> {
    fn place(&self, span: Range<usize>) -> Place {
        Place::new(self.file, span)
    }

    fn note(&mut self, span: Range<usize>, problem: Problem) {
        self.found.push((span, Box::new(|| problem)));
    }

    fn section(&mut self, keys: &'static [Key], path: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let full = match path {
                "" => name.get_ref().to_string(),
                _ => format!("{path}.{}", name.get_ref()),
            };
            match (keys::find(keys, &full), value.get_ref()) {
                (Found::Key(key), _) => self.key(key, value),
                (Found::Section, DeValue::Table(inner)) => self.section(keys, &full, inner),
                (Found::Section, other) => {
                    let problem =
                        Problem::new(format!("{full} is a section, not {}", type_name(other)))
                            .at(&self.place(value.span()), "")
                            .help(format!("write [{full}] on a line of its own, its keys below"));
                    self.note(value.span(), problem);
                }
                (Found::Nothing, value) => match (keys::renamed(&full), value) {
                    (Some(Some(renamed)), _) => self.renamed(renamed, name),
                    (Some(None), DeValue::Table(inner)) => self.section(keys, &full, inner),
                    _ => self.unknown(keys, path, path, name),
                },
            }
        }
    }

    fn renamed(&mut self, renamed: &Renamed, name: &Spanned<DeString<'_>>) {
        let span = name.span();
        let problem = Problem::new(format!("{} was renamed to {}", renamed.old, renamed.new))
            .at(&self.place(span.clone()), format!("write {}", renamed.new));
        self.note(
            span,
            match renamed.help {
                "" => problem,
                help => problem.help(help),
            },
        );
    }

    /// `inside` is the section of `keys`, or the list whose tables have `keys`.
    fn unknown(
        &mut self,
        keys: &'static [Key],
        section: &str,
        inside: &str,
        name: &Spanned<DeString<'_>>,
    ) {
        let inside = match inside {
            "" => String::new(),
            list if list.starts_with('[') => format!(" in {list}"),
            section => format!(" in [{section}]"),
        };
        let place = self.place(name.span());
        let (section, key) = (section.to_owned(), name.get_ref().to_string());
        let make = move || {
            let shown: String = harmless(&key).chars().take(64).collect();
            let help = match keys::meant(keys, &section, &key) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("possible are {}", keys::inside(keys, &section).join(", ")),
            };
            Problem::new(format!("unknown key {shown:?}{inside}")).at(&place, "").help(help)
        };
        self.found.push((name.span(), Box::new(make)));
    }

    fn key(&mut self, key: &'static Key, value: &Spanned<DeValue<'_>>) {
        match self.given(key.path, key, value) {
            Some(given) => self.draft.given.push((key, given)),
            None => {
                self.draft.broken.insert(key.path);
            }
        }
    }

    /// What `value` gives for `key`, which stands at `path`.
    fn given(
        &mut self,
        path: &str,
        key: &'static Key,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Given> {
        if let DeValue::Array(list) = value.get_ref()
            && let Some(first_over) = list.get(LONGEST_LIST)
        {
            let why = format!("the maximum is {LONGEST_LIST}");
            let problem = Problem::new(format!("the list {path} is too long"))
                .at(&self.place(first_over.span()), why);
            self.note(first_over.span(), problem);
            return None;
        }
        match (&key.kind, value.get_ref()) {
            (Kind::Tables(keys), DeValue::Array(rows)) => {
                let rows: Vec<_> =
                    rows.iter().filter_map(|row| self.row(path, key, keys, row)).collect();
                Some(Given::Tables(rows, Some(self.place(value.span()))))
            }
            (Kind::Tables(_), other) => {
                let problem =
                    Problem::new(format!("{path} is a list of tables, not {}", type_name(other)))
                        .at(&self.place(value.span()), "")
                        .help(format!("write [[{path}]] with two brackets, once for each"));
                self.note(value.span(), problem);
                None
            }
            (Kind::OneOrMore(word), DeValue::Array(items)) if items.is_empty() => {
                let problem = Problem::new(format!("bad value for {path}")).at(
                    &self.place(value.span()),
                    format!("an empty list: expected at least one string with {}", word.what),
                );
                self.note(value.span(), problem);
                None
            }
            (Kind::Words(_) | Kind::OneOrMore(_), DeValue::Array(items)) => {
                let items: Vec<_> =
                    items.iter().filter_map(|item| self.item(path, key, item)).collect();
                Some(Given::List(items, Some(self.place(value.span()))))
            }
            (Kind::Words(word), other) => {
                let problem = Problem::new(format!("bad value for {path}")).at(
                    &self.place(value.span()),
                    format!(
                        "expected a list of strings, each {}, got {}",
                        word.what,
                        type_name(other)
                    ),
                );
                self.note(value.span(), problem);
                None
            }
            _ => self.item(path, key, value).map(Given::One),
        }
    }

    fn item(
        &mut self,
        path: &str,
        key: &'static Key,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Item> {
        let place = self.place(value.span());
        match key.kind.read(value.get_ref()) {
            Ok(value) => Some(Item { value, place: Some(place) }),
            Err(why) => {
                let problem = Problem::new(format!("bad value for {path}")).at(&place, why);
                self.note(value.span(), problem);
                self.draft.broken.insert(key.path);
                None
            }
        }
    }

    fn row(
        &mut self,
        path: &str,
        list: &'static Key,
        keys: &'static [Key],
        row: &Spanned<DeValue<'_>>,
    ) -> Option<Row> {
        let place = self.place(row.span());
        let DeValue::Table(table) = row.get_ref() else {
            let want = format!("expected {}, got {}", list.kind.wanted(), type_name(row.get_ref()));
            let problem = Problem::new(format!("bad value for {path}")).at(&place, want);
            self.note(row.span(), problem);
            self.draft.broken.insert(list.path);
            return None;
        };
        let mut read = Row { place, fields: Vec::new(), broken: BTreeSet::new(), unknown: false };
        self.fields(path, keys, "", table, &mut read);
        read.fields.sort_by_key(|(key, _)| keys.iter().position(|other| other.path == key.path));
        if read.is_broken() {
            self.draft.broken.insert(list.path);
        }
        Some(read)
    }

    /// The fields of a row's table, or of the section `inside` of it.
    fn fields(
        &mut self,
        path: &str,
        keys: &'static [Key],
        inside: &str,
        table: &DeTable<'_>,
        row: &mut Row,
    ) {
        for (name, value) in table {
            let field = match inside {
                "" => name.get_ref().to_string(),
                _ => format!("{inside}.{}", name.get_ref()),
            };
            let full = format!("{path}.{field}");
            let before = self.found.len();
            match (keys::find(keys, &field), value.get_ref()) {
                (Found::Key(key), _) => {
                    row.fields.extend(self.given(&full, key, value).map(|given| (key, given)));
                    if self.found.len() > before {
                        row.broken.insert(key.path);
                    }
                }
                (Found::Section, DeValue::Table(inner)) => {
                    self.fields(path, keys, &field, inner, row);
                }
                (Found::Section, other) => {
                    row.unknown = true;
                    let below = keys::inside(keys, &field);
                    let example = below.first().copied().unwrap_or_default();
                    let problem =
                        Problem::new(format!("{full} is a section, not {}", type_name(other)))
                            .at(&self.place(value.span()), "")
                            .help(format!(
                                "write {field}.{example} = ...; possible are {}",
                                below.join(", ")
                            ));
                    self.note(value.span(), problem);
                }
                (Found::Nothing, _) => {
                    row.unknown = true;
                    match keys::renamed(&full) {
                        Some(Some(renamed)) => self.renamed(renamed, name),
                        _ => {
                            let section = format!("[[{path}]]");
                            self.unknown(keys, inside, &section, name);
                        }
                    }
                }
            }
        }
    }
}
