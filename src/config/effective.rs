//! The effective values with the place each came from: `config show`.

use std::fmt;

use serde_json::Value as Json;

use super::Config;
use super::draft::{Given, Item};
use super::keys::{BOOT_HCA_DEADLINE, KEYS, MODULES_LOAD};
use super::merge::Merged;
use super::problem::Place;
use super::timespan::TimeSpan;

/// One effective value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The key with dots; items of a list are counted: `modules.load[3]`,
    /// `expect.port[0].pci`. An empty list is one setting without a count.
    pub key: String,
    /// The value; time spans as text, `2min 30s`.
    pub value: Json,
    /// Where it came from.
    pub origin: SettingOrigin,
    spot: Spot,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    /// No file gives it.
    Default,
    /// A file gives it.
    File {
        /// The path inside the tree.
        path: String,
        /// The line, counted from 1.
        line: usize,
    },
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "from {path}:{line}"),
        }
    }
}

/// Where in a TOML file a setting is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Spot {
    One,
    Item { index: usize, last: bool },
    Field { index: usize, name: &'static str },
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
            Some(Given::One(Item { place: None, .. })) if path == BOOT_HCA_DEADLINE => {
                let value = TimeSpan(config.boot.hca_deadline).to_string().into();
                list.push(setting(path.to_owned(), value, None, Spot::One));
            }
            Some(Given::One(item)) => {
                let value = item.value.to_json();
                list.push(setting(path.to_owned(), value, item.place.as_ref(), Spot::One));
            }
            Some(Given::List(items, place)) => {
                let mut shown: Vec<(Json, Option<&Place>)> = Vec::new();
                for item in items {
                    let value = item.value.to_json();
                    let skipped = path == MODULES_LOAD
                        && config.modules.skip.iter().any(|name| value == name.as_str());
                    if !skipped && shown.iter().all(|(other, _)| *other != value) {
                        shown.push((value, item.place.as_ref()));
                    }
                }
                if shown.is_empty() {
                    list.push(empty(place));
                }
                let count = shown.len();
                for (index, (value, place)) in shown.into_iter().enumerate() {
                    let spot = Spot::Item { index, last: index + 1 == count };
                    list.push(setting(format!("{path}[{index}]"), value, place, spot));
                }
            }
            Some(Given::Tables(rows, place)) => {
                if rows.is_empty() {
                    list.push(empty(place));
                }
                for (index, row) in rows.iter().enumerate() {
                    for (field, item) in &row.fields {
                        let name = field.path;
                        let spot = Spot::Field { index, name };
                        let key = format!("{path}[{index}].{name}");
                        list.push(setting(key, item.value.to_json(), item.place.as_ref(), spot));
                    }
                }
            }
            None => {}
        }
    }
    list
}

fn setting(key: String, value: Json, place: Option<&Place>, spot: Spot) -> Setting {
    Setting { key, value, origin: origin(place), spot }
}

fn origin(place: Option<&Place>) -> SettingOrigin {
    place.map_or(SettingOrigin::Default, |place| SettingOrigin::File {
        path: place.path(),
        line: place.line(),
    })
}

/// The settings as TOML, each with its origin as a comment.
#[must_use]
pub fn to_toml(settings: &[Setting]) -> String {
    let mut text = String::new();
    let mut head = String::new();
    for setting in settings {
        let base = setting.key.split('[').next().unwrap_or_default();
        let (section, name) = base.rsplit_once('.').unwrap_or(("", base));
        // An empty list at the top could stand before all sections only.
        if setting.spot == Spot::One && section.is_empty() {
            continue;
        }
        let (wanted, line) = match &setting.spot {
            Spot::Field { index, name } => (
                (format!("[[{base}]]"), *index),
                format!("{name} = {}  # {}\n", setting.value, setting.origin),
            ),
            Spot::One => (
                (format!("[{section}]"), 0),
                format!("{name} = {}  # {}\n", setting.value, setting.origin),
            ),
            Spot::Item { index, last } => {
                let open = if *index == 0 { format!("{name} = [\n") } else { String::new() };
                let close = if *last { "]\n" } else { "" };
                let item = format!("    {},  # {}\n", setting.value, setting.origin);
                ((format!("[{section}]"), 0), format!("{open}{item}{close}"))
            }
        };
        let (wanted, count) = wanted;
        let this_head = format!("{wanted} {count}");
        if this_head != head {
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{wanted}\n"));
            head = this_head;
        }
        text.push_str(&line);
    }
    text
}

/// The settings as JSON objects.
#[must_use]
pub fn to_json(settings: &[Setting]) -> Json {
    settings
        .iter()
        .map(|setting| {
            let (file, line) = match &setting.origin {
                SettingOrigin::Default => (None, None),
                SettingOrigin::File { path, line } => (Some(path), Some(line)),
            };
            serde_json::json!({
                "key": setting.key, "value": setting.value, "file": file, "line": line,
            })
        })
        .collect()
}
