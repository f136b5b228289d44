//! One file's text into a [`Draft`]: keys known, values of their type, each
//! with its place. Nothing is judged across keys or files here.

use crate::names::{FirmwareName, Guid, harmless, shown};
use std::any::Any;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::keys::{self, Found, KEYS, Key, Kind, Name, Settings, Tables, Value, type_name};
use super::problem::{Place, Problem, Problems, Source};
use super::withheld::Part;

/// Longer lists are refused: they would only cost time.
const LONGEST_LIST: usize = 1000;

/// What one file gives, or one table of a list of tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    pub(crate) given: Vec<(&'static Key, Given)>,
    /// Keys that were given badly: nothing may be concluded from their absence.
    pub(crate) broken: BTreeSet<&'static str>,
    /// A key was unknown: any other may have been meant. Of a file: by one that resembles none.
    pub(crate) unknown: bool,
    /// Of a file, keys of whose value something is not known.
    pub(crate) lost: BTreeSet<&'static str>,
    /// Of a file, what has an error.
    pub(crate) parts: BTreeSet<Part>,
}

/// What is given for one key.
#[derive(Debug, Clone)]
pub(crate) enum Given {
    One(Item),
    /// Empty takes away what weaker files gave; then the place is that of the
    /// empty list, `None` if it is the default's.
    List(Vec<Item>, Option<Place>),
    Tables(Vec<Row>, Option<Place>),
    /// Firmware settings, and the place of their table.
    Settings(Vec<(FirmwareName, Item)>, Place),
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
    pub(crate) draft: Draft,
    /// It is not carried out, because it has an error or contradicts another.
    pub(crate) is_left_out: bool,
}

impl Item {
    /// The value, if it is of this type.
    pub(crate) fn get<T: Any + Clone>(&self) -> Option<T> {
        self.value.get()
    }

    pub(crate) fn placed<T: Any + Clone>(&self) -> Option<(T, Option<&Place>)> {
        Some((self.get()?, self.place.as_ref()))
    }
}

impl Given {
    pub(crate) fn one<T: Any + Clone>(&self) -> Option<(T, Option<&Place>)> {
        let Self::One(item) = self else { return None };
        item.placed()
    }

    /// The items of a list, or of one that stands for it.
    pub(crate) fn items(&self) -> &[Item] {
        match self {
            Self::One(item) => std::slice::from_ref(item),
            Self::List(items, _) => items,
            Self::Tables(..) | Self::Settings(..) => &[],
        }
    }

    pub(crate) fn tables(&self) -> &[Row] {
        let Self::Tables(rows, _) = self else { return &[] };
        rows
    }
}

impl Row {
    /// What is given for the key of that name.
    fn given(&self, name: &str) -> Option<&Given> {
        self.draft.given.iter().find(|(key, _)| key.path == name).map(|(_, given)| given)
    }

    /// The field of that name, with its place.
    pub(crate) fn field<T: Any + Clone>(&self, name: Name<T>) -> Option<(T, &Place)> {
        let (value, at) = self.given(&name)?.one()?;
        Some((value, at.unwrap_or(&self.place)))
    }

    /// The field of that name.
    pub(crate) fn value<T: Any + Clone>(&self, name: Name<T>) -> Option<T> {
        self.field(name).map(|(value, _)| value)
    }

    /// The list of that name, with its place; `None` if it is not given.
    pub(crate) fn list<T: Any + Clone>(&self, name: Name<T>) -> Option<(Vec<T>, &Place)> {
        let Given::List(items, place) = self.given(&name)? else { return None };
        let values = items.iter().filter_map(Item::get).collect();
        Some((values, place.as_ref().unwrap_or(&self.place)))
    }

    /// What is given for a key that holds one or more, each with its place.
    pub(crate) fn each<T: Any + Clone>(&self, name: Name<T>) -> Vec<(T, &Place)> {
        let items = self.given(&name).map(Given::items).unwrap_or_default().iter();
        items.filter_map(Item::placed).map(|(v, at)| (v, at.unwrap_or(&self.place))).collect()
    }

    /// As [`Row::each`], as one of the ways to say a thing; with the key.
    pub(crate) fn way<T: Any + Clone, S>(&self, name: Name<T>, of: impl Fn(T) -> S) -> Way<'_, S> {
        (name.path(), self.each(name).into_iter().map(|(value, at)| (of(value), at)).collect())
    }

    /// Notes that a table of `list` lacks the key `name`, which each has to have.
    pub(crate) fn require(&self, list: &str, name: &str, help: &str, problems: &mut Problems) {
        if self.lacks(&[name]) {
            let problem = Problem::new(format!("{list} has no {name}"));
            problems.push(problem.at(&self.place, "").help(help));
        }
    }

    /// The firmware settings of that name.
    pub(crate) fn settings(&self, name: Name<Settings>) -> &[(FirmwareName, Item)] {
        match self.given(&name) {
            Some(Given::Settings(items, _)) => items,
            _ => &[],
        }
    }

    /// None of these keys is given, nor was one tried to be given.
    pub(crate) fn lacks(&self, names: &[&str]) -> bool {
        let is_tried =
            |name: &&str| self.given(name).is_some() || self.draft.broken.contains(*name);
        !self.draft.unknown && !names.iter().any(is_tried)
    }

    /// A key of this row was given badly, another than `others`.
    pub(crate) fn is_broken_beside(&self, others: &[&str]) -> bool {
        self.draft.unknown || self.draft.broken.iter().any(|key| !others.contains(key))
    }

    /// The tables of that name.
    pub(crate) fn tables(&self, name: Name<Tables>) -> &[Self] {
        self.given(&name).map(Given::tables).unwrap_or_default()
    }

    /// Nothing of it was given badly.
    pub(crate) fn is_whole(&self) -> bool {
        !self.draft.unknown && self.draft.broken.is_empty()
    }

    /// What it is for is not known by the keys `selectors`, of which it has to have so many.
    pub(crate) fn selects_unknown(&self, selectors: &[&str], number: usize) -> bool {
        let given = selectors.iter().filter_map(|name| self.given(name));
        let is_zero = |item: &Item| item.get::<Guid>().is_some_and(|guid| guid.is_zero());
        let has_zero = |given: &Given| given.items().iter().any(is_zero);
        selectors.iter().any(|name| self.draft.broken.contains(name))
            || given.clone().count() != number
            || given.clone().any(has_zero)
    }

    /// Something of it was given at `place`.
    pub(crate) fn has(&self, place: &Place) -> bool {
        let is_it = |item: &Item| item.place.as_ref() == Some(place);
        let given_there = |(_, given): &(_, Given)| match given {
            Given::One(item) => is_it(item),
            Given::List(items, at) => at.as_ref() == Some(place) || items.iter().any(is_it),
            Given::Tables(rows, _) => rows.iter().any(|row| row.has(place)),
            Given::Settings(items, at) => at == place || items.iter().any(|(_, item)| is_it(item)),
        };
        self.place == *place || self.draft.given.iter().any(given_there)
    }
}

/// Of so many unknown keys of a file it is searched for what they may mean.
const MOST_SEARCHED: usize = 100;

/// The key at `path`, or those of the section.
fn keys_below(path: &str) -> impl Iterator<Item = &'static Key> {
    let is_below = move |key: &&Key| {
        key.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    KEYS.iter().filter(is_below)
}

impl Draft {
    /// Of the value of `key`, as it is `given`, something is not known.
    fn lose(&mut self, key: &'static Key, given: Option<&Given>, value: &DeValue<'_>) {
        self.parts.insert(Part::of(key.path));
        match (given, value) {
            // Each of them says of itself what is wrong with it.
            (Some(Given::Tables(rows, _)), DeValue::Array(all)) if rows.len() == all.len() => {
                return;
            }
            (Some(_), _) => {}
            // Entries take nothing away, without their brackets either.
            (None, value) => {
                let are_entries = match value {
                    DeValue::Array(items) => !items.is_empty(),
                    value => key.kind.read(value).is_ok(),
                };
                if matches!(key.kind, Kind::Words(_)) && are_entries {
                    self.given.push((key, Given::List(Vec::new(), None)));
                }
            }
        }
        self.lost.insert(key.path);
    }

    fn lose_all(&mut self, keys: impl Iterator<Item = &'static Key>) {
        for key in keys {
            self.parts.insert(Part::of(key.path));
            self.lost.insert(key.path);
        }
    }

    /// An unknown name in `section` of a file may be the key that it resembles, or else any of the
    /// section that can have its value.
    fn lose_meant(&mut self, section: &str, name: &str, value: &DeValue<'_>) {
        let can_have = |key: &&Key| match (&key.kind, value) {
            (Kind::Words(_), DeValue::Array(items)) => {
                items.iter().all(|item| key.kind.read(item.get_ref()).is_ok())
            }
            (Kind::Words(_), _) => false,
            (kind, value) => kind.read(value).is_ok(),
        };
        let path = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
        let meant = match keys::find(KEYS, &path) {
            Found::Key(_) => Some(path),
            Found::Section | Found::Nothing => keys::meant(KEYS, section, name),
        };
        match (meant, value) {
            (Some(path), DeValue::Table(inner))
                if matches!(keys::find(KEYS, &path), Found::Section) =>
            {
                for (name, value) in inner.iter().take(MOST_SEARCHED) {
                    self.lose_meant(&path, name.get_ref(), value.get_ref());
                }
                if inner.len() > MOST_SEARCHED {
                    self.lose_all(keys_below(&path));
                }
            }
            (Some(path), value) => {
                for key in keys_below(&path) {
                    self.lose(key, None, value);
                }
            }
            (None, _) if section.is_empty() => self.unknown = true,
            (None, value) => {
                self.parts.insert(Part::of(section));
                for key in keys_below(section).filter(can_have) {
                    self.lose(key, None, value);
                }
            }
        }
    }
}

/// A key, and what it gives: values, each with its place.
pub(crate) type Way<'a, S> = (&'static str, Vec<(S, &'a Place)>);

/// What is given in the one way of `ways` that is taken. None, and noted, if several are; `what`
/// begins the message.
pub(crate) fn one_way<'a, S>(
    what: &str,
    ways: impl IntoIterator<Item = Way<'a, S>>,
    problems: &mut Problems,
) -> Vec<(S, &'a Place)> {
    let (keys, all): (Vec<_>, Vec<_>) = ways.into_iter().unzip();
    let mut given: Vec<_> = all.into_iter().filter(|values| !values.is_empty()).collect();
    if given.len() > 1 {
        let start = Problem::new(format!("{what} in more than one way"))
            .help(format!("keep exactly one of {}", keys.join(", ")));
        let firsts = given.iter().filter_map(|values| values.first());
        let labels = firsts.zip(["one way", "and another", "and a third", "and a fourth"]);
        problems.push(labels.fold(start, |p, ((_, at), label)| p.at(at, label)));
        return Vec::new();
    }
    given.pop().unwrap_or_default()
}

/// Reads one file, noting everything that is wrong with it. False if the draft is only what was
/// recovered of a file that is not TOML.
pub(crate) fn read(file: &Arc<Source>, problems: &mut Problems) -> (Draft, bool) {
    let (table, errors) = DeTable::parse_recoverable(&file.text);
    let mut reader = DraftReader { file, found: Vec::new() };
    let mut draft = Draft::default();
    reader.table("", KEYS, "", table.get_ref(), &mut draft);
    let mut found = reader.found;

    // One slip in the syntax makes followers: the first of a line is said, and
    // what was recovered from that line is not judged.
    let mut bad_lines = BTreeSet::new();
    let is_toml = errors.is_empty();
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
        let problem = match unquoted(&file.text, span.start) {
            Some(line) => problem.help(format!("write text in quotes: {line}")),
            None => problem,
        };
        (span, Box::new(|| problem) as Make)
    }));
    found.sort_by_key(|(span, _)| span.start);
    for (_, problem) in found {
        problems.push_with(problem);
    }
    (draft, is_toml)
}

/// Makes a problem if it is shown: of thousands of unknown keys each would search for the key
/// that is meant.
type Make = Box<dyn FnOnce() -> Problem>;

/// A value of the file, with its place.
type SpannedValue<'a> = Spanned<DeValue<'a>>;

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

/// The line around `at` with its value in quotes, if all that it lacks are these.
fn unquoted(text: &str, at: usize) -> Option<String> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(start..)?.lines().next()?;
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":._-/".contains(c);
    (!value.is_empty() && value.len() <= 64 && value.chars().all(is_plain))
        .then(|| format!("{key} = \"{value}\""))
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
}

impl DraftReader<'_> {
    fn place(&self, span: Range<usize>) -> Place {
        Place::new(self.file, span)
    }

    fn note(&mut self, span: Range<usize>, problem: Problem) {
        self.found.push((span, Box::new(|| problem)));
    }

    fn bad_value(&mut self, path: &str, span: Range<usize>, why: impl Into<String>) {
        let problem = Problem::new(format!("bad value for {path}"));
        self.note(span.clone(), problem.at(&self.place(span), why));
    }

    /// `section` is the section of `keys`, and `list` the list whose tables have `keys`.
    fn unknown(
        &mut self,
        keys: &'static [Key],
        list: &str,
        section: &str,
        name: &Spanned<DeString<'_>>,
    ) {
        let inside = match (list, section) {
            ("", "") => String::new(),
            ("", section) => format!(" in [{section}]"),
            (list, _) => format!(" in [[{list}]]"),
        };
        let place = self.place(name.span());
        let (section, key) = (section.to_owned(), name.get_ref().to_string());
        let make = move || {
            let shown = shown(&harmless(&key));
            let help = match keys::meant(keys, &section, &key) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("possible are {}", keys::inside(keys, &section).join(", ")),
            };
            Problem::new(format!("unknown key {shown}{inside}")).at(&place, "").help(help)
        };
        self.found.push((name.span(), Box::new(make)));
    }

    /// What `value` gives for `key`, which stands at `path`.
    fn given(&mut self, path: &str, key: &'static Key, value: &SpannedValue<'_>) -> Option<Given> {
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
            (Kind::Settings, DeValue::Table(table)) => {
                let mut items = Vec::new();
                for (name, value) in table {
                    let name_read = name.get_ref().parse::<FirmwareName>();
                    let name_read = name_read.map_err(|e| (name.span(), e.to_string()));
                    let value_read = keys::setting(value.get_ref());
                    let value_read = value_read.map_err(|why| (value.span(), why));
                    match name_read.and_then(|name| Ok((name, value_read?))) {
                        Ok((name, read)) => {
                            let place = Some(self.place(value.span()));
                            items.push((name, Item { value: read, place }));
                        }
                        Err((span, why)) => self.bad_value(path, span, why),
                    }
                }
                Some(Given::Settings(items, self.place(value.span())))
            }
            (Kind::OneOrMore(word), DeValue::Array(items)) if items.is_empty() => {
                let why = format!("an empty list: expected at least one string with {}", word.what);
                self.bad_value(path, value.span(), why);
                None
            }
            (Kind::Numbers { .. }, DeValue::Array(items)) if items.is_empty() => {
                let why = "an empty list: expected at least one whole number";
                self.bad_value(path, value.span(), why.to_owned());
                None
            }
            (Kind::Words(_) | Kind::OneOrMore(_) | Kind::Numbers { .. }, DeValue::Array(items)) => {
                let items: Vec<_> =
                    items.iter().filter_map(|item| self.item(path, key, item)).collect();
                Some(Given::List(items, Some(self.place(value.span()))))
            }
            (Kind::Words(word), other) => {
                let (what, got) = (word.what, type_name(other));
                let why = format!("expected a list of strings, each {what}, got {got}");
                self.bad_value(path, value.span(), why);
                None
            }
            _ => self.item(path, key, value).map(Given::One),
        }
    }

    fn item(&mut self, path: &str, key: &'static Key, value: &SpannedValue<'_>) -> Option<Item> {
        match key.kind.read(value.get_ref()) {
            Ok(read) => Some(Item { value: read, place: Some(self.place(value.span())) }),
            Err(why) => {
                self.bad_value(path, value.span(), why);
                None
            }
        }
    }

    fn row(
        &mut self,
        path: &str,
        list: &'static Key,
        keys: &'static [Key],
        row: &SpannedValue<'_>,
    ) -> Option<Row> {
        let DeValue::Table(table) = row.get_ref() else {
            let why = format!("expected {}, got {}", list.kind.wanted(), type_name(row.get_ref()));
            self.bad_value(path, row.span(), why);
            return None;
        };
        let mut draft = Draft::default();
        self.table(path, keys, "", table, &mut draft);
        draft.given.sort_by_key(|(key, _)| keys.iter().position(|other| other.path == key.path));
        Some(Row { place: self.place(row.span()), draft, is_left_out: false })
    }

    /// What the table gives, or the section `inside` of it. `list` is the list of which it is
    /// one, empty for the file itself.
    fn table(
        &mut self,
        list: &str,
        keys: &'static [Key],
        inside: &str,
        table: &DeTable<'_>,
        draft: &mut Draft,
    ) {
        let join = |above: &str, name: &str| match above {
            "" => name.to_owned(),
            _ => format!("{above}.{name}"),
        };
        for (name, value) in table {
            let field = join(inside, name.get_ref());
            let full = join(list, &field);
            let before = self.found.len();
            match (keys::find(keys, &field), value.get_ref()) {
                (Found::Key(key), _) => {
                    let given = self.given(&full, key, value);
                    if self.found.len() > before {
                        draft.broken.insert(key.path);
                        if list.is_empty() {
                            draft.lose(key, given.as_ref(), value.get_ref());
                        }
                    }
                    draft.given.extend(given.map(|given| (key, given)));
                }
                (Found::Section, DeValue::Table(inner)) => {
                    self.table(list, keys, &field, inner, draft);
                }
                (Found::Section, other) => {
                    match list {
                        "" => draft.lose_all(keys_below(&field)),
                        _ => draft.unknown = true,
                    }
                    let below = keys::inside(keys, &field);
                    let help = match (list, below.first()) {
                        ("", _) | (_, None) => {
                            format!("write [{full}] on a line of its own, its keys below")
                        }
                        (_, Some(example)) => format!(
                            "write {field}.{example} = ...; possible are {}",
                            below.join(", ")
                        ),
                    };
                    let problem =
                        Problem::new(format!("{full} is a section, not {}", type_name(other)))
                            .at(&self.place(value.span()), "")
                            .help(help);
                    self.note(value.span(), problem);
                }
                (Found::Nothing, other) => {
                    if list.is_empty() && before < MOST_SEARCHED {
                        // Each search takes its time.
                        draft.lose_meant(inside, name.get_ref(), other);
                    } else {
                        draft.unknown = true;
                    }
                    self.unknown(keys, list, inside, name);
                }
            }
        }
    }
}
