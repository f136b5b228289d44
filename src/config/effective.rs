//! The effective values with the place each came from: `config show`.

use serde_json::Value as Json;

use super::Config;
use super::draft::{Given, Item, Row};
use super::keys::{BOOT_ADAPTER_TIMEOUT, KEYS, MODULES_LOAD};
use super::merge::Merged;
use super::problem::Place;
use super::timespan::TimeSpan;
use crate::names::{HIDDEN, is_fabric_secret};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The key with dots; items of a list are counted: `modules.load[3]`,
    /// `port[0].pci`. An empty list is one setting without a count.
    pub key: String,
    /// The value; time spans as text, `2min 30s`.
    pub value: Json,
    /// Where it came from.
    pub origin: SettingOrigin,
    spot: Spot,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, strum::Display)]
pub enum SettingOrigin {
    /// No file gives it.
    #[strum(to_string = "default")]
    Default,
    #[strum(to_string = "from {path}:{line}")]
    File {
        /// The path inside the tree.
        path: String,
        /// The line, counted from 1.
        line: usize,
    },
}

/// Where in a TOML file a setting is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Spot {
    One,
    Item,
    Field { head: String, name: &'static str },
}

impl Setting {
    /// The key, without what is counted.
    fn base(&self) -> &str {
        self.key.split('[').next().unwrap_or_default()
    }
}

/// The effective values, in the order of the table of keys.
pub(crate) fn settings(merged: &Merged, config: &Config) -> Vec<Setting> {
    let mut list = Vec::new();
    for key in KEYS {
        let path = key.path;
        let empty = |place: &Option<Place>| Setting {
            key: path.to_owned(),
            value: Json::Array(Vec::new()),
            origin: origin(place.as_ref()),
            spot: Spot::One,
        };
        match merged.get(path) {
            // The one default that another value changes.
            Some(Given::One(Item { place: None, .. })) if path == BOOT_ADAPTER_TIMEOUT.path() => {
                let value = TimeSpan(config.boot.adapter_timeout).to_string().into();
                list.push(setting(path.to_owned(), value, None, Spot::One));
            }
            Some(Given::One(item)) => {
                let value = item.value.json.clone();
                list.push(setting(path.to_owned(), value, item.place.as_ref(), Spot::One));
            }
            Some(Given::List(items, place)) => {
                let mut shown: Vec<(Json, Option<&Place>)> = Vec::new();
                for item in items {
                    let value = item.value.json.clone();
                    let excluded = path == MODULES_LOAD.path()
                        && config.modules.exclude.iter().any(|name| value == name.as_str());
                    if !excluded && shown.iter().all(|(other, _)| *other != value) {
                        shown.push((value, item.place.as_ref()));
                    }
                }
                if shown.is_empty() {
                    list.push(empty(place));
                }
                for (index, (value, place)) in shown.into_iter().enumerate() {
                    list.push(setting(format!("{path}[{index}]"), value, place, Spot::Item));
                }
            }
            Some(Given::Tables(rows, place)) => {
                if rows.is_empty() {
                    list.push(empty(place));
                }
                tables(&mut list, path, path, "", rows);
            }
            // Only in the tables of a list.
            Some(Given::Settings(..)) | None => {}
        }
    }
    list
}

/// The settings of a list of tables. `path` counts the items of the lists above
/// it, `head` is how TOML names it, `count` tells apart tables with one head.
fn tables(list: &mut Vec<Setting>, path: &str, head: &str, count: &str, rows: &[Row]) {
    for (index, row) in rows.iter().enumerate() {
        let count = format!("{count}{index}.");
        for (field, given) in &row.draft.given {
            let name = field.path;
            let key = format!("{path}[{index}].{name}");
            let spot = Spot::Field { head: format!("[[{head}]] {count}"), name };
            match given {
                Given::One(item) => {
                    list.push(setting(key, item.value.json.clone(), item.place.as_ref(), spot));
                }
                Given::List(items, place) => {
                    let value = items.iter().map(|item| item.value.json.clone()).collect();
                    list.push(setting(key, value, place.as_ref(), spot));
                }
                Given::Settings(items, place) => {
                    let value = items.iter();
                    let value =
                        value.map(|(name, item)| (name.to_string(), item.value.json.clone()));
                    list.push(setting(key, Json::Object(value.collect()), Some(place), spot));
                }
                Given::Tables(rows, _) => {
                    tables(list, &key, &format!("{head}.{name}"), &count, rows);
                }
            }
        }
    }
}

fn setting(key: String, mut value: Json, place: Option<&Place>, spot: Spot) -> Setting {
    if let Json::Object(options) = &mut value {
        for (_, value) in options.iter_mut().filter(|(option, _)| is_fabric_secret(option)) {
            *value = HIDDEN.into();
        }
    }
    Setting { key, value, origin: origin(place), spot }
}

fn origin(place: Option<&Place>) -> SettingOrigin {
    place.map_or(SettingOrigin::Default, |place| SettingOrigin::File {
        path: place.path(),
        line: place.line(),
    })
}

/// Only the settings that are not as without any file.
pub fn changed(all: &[Setting]) -> Vec<Setting> {
    let defaults = settings(&Merged::defaults(), &Config::default());
    let is_default = |setting: &&Setting| {
        setting.origin == SettingOrigin::Default
            || defaults.iter().any(|d| d.key == setting.key && d.value == setting.value)
    };
    all.iter().filter(|setting| !is_default(setting)).cloned().collect()
}

/// A value as TOML has it, lists with a space after each comma.
fn toml(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(Json::to_string).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(items) => {
            // Quoted, a name may have brackets.
            let items: Vec<String> =
                items.iter().map(|(name, value)| format!("{name:?} = {value}")).collect();
            format!("{{ {} }}", items.join(", "))
        }
        value => value.to_string(),
    }
}

/// The settings as TOML, each with its origin as a comment.
pub fn to_toml(settings: &[Setting]) -> String {
    let mut text = String::new();
    let mut head = String::new();
    // What stands in no section has to come before the first.
    let in_none = |setting: &&Setting| setting.spot == Spot::One && !setting.key.contains('.');
    let (mut ordered, rest): (Vec<_>, Vec<_>) = settings.iter().partition(in_none);
    ordered.extend(rest);
    for (at, setting) in ordered.iter().enumerate() {
        let base = setting.base();
        let (section, name) = base.rsplit_once('.').unwrap_or(("", base));
        let line =
            |name: &str| format!("{name} = {}  # {}\n", toml(&setting.value), setting.origin);
        let (this_head, line) = match &setting.spot {
            Spot::Field { head, name } => (head.clone(), line(name)),
            Spot::One if section.is_empty() => (String::new(), line(name)),
            Spot::One => (format!("[{section}] "), line(name)),
            Spot::Item => {
                let is_of_it = |other: Option<&&Setting>| other.is_some_and(|o| o.base() == base);
                let is_first = !is_of_it(at.checked_sub(1).and_then(|before| ordered.get(before)));
                let open = if is_first { format!("{name} = [\n") } else { String::new() };
                let close = if is_of_it(ordered.get(at + 1)) { "" } else { "]\n" };
                let item = format!("    {},  # {}\n", setting.value, setting.origin);
                (format!("[{section}] "), format!("{open}{item}{close}"))
            }
        };
        if this_head != head {
            let gap = if text.is_empty() { "" } else { "\n" };
            let (shown, _count) = this_head.split_once(' ').unwrap_or((&this_head, ""));
            text.push_str(&format!("{gap}{shown}\n"));
            head = this_head;
        }
        text.push_str(&line);
    }
    text
}
