//! The files' drafts laid over the defaults, weakest first.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use super::draft::{Draft, Given, Row, default_of};
use super::keys::{KEYS, Name, Tables};
use super::problem::Place;

/// What holds for each key after the last file.
#[derive(Debug, Clone)]
pub(crate) struct Merged {
    given: BTreeMap<&'static str, Given>,
    /// Keys that some file gave badly.
    broken: BTreeSet<&'static str>,
}

impl Merged {
    /// Only the defaults.
    pub(crate) fn defaults() -> Self {
        let given = KEYS.iter().filter_map(|key| Some((key.path, default_of(key)?))).collect();
        Self { given, broken: BTreeSet::new() }
    }

    /// Lays one more file over what is there: a later value wins, lists are
    /// appended to, an empty list takes away what was there.
    pub(crate) fn add(&mut self, draft: Draft) {
        self.broken.extend(draft.broken);
        for (key, new) in draft.given {
            match (self.given.get_mut(key.path), new) {
                (Some(Given::List(old, _)), Given::List(new, _)) if !new.is_empty() => {
                    old.extend(new);
                }
                (Some(Given::Tables(old, _)), Given::Tables(new, _)) if !new.is_empty() => {
                    old.extend(new);
                }
                (_, new) => {
                    self.given.insert(key.path, new);
                }
            }
        }
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Given> {
        self.given.get(path)
    }

    pub(crate) fn one<T: Any + Clone>(&self, name: Name<T>) -> Option<(T, Option<&Place>)> {
        match self.given.get(name.path())? {
            Given::One(item) => item.get().map(|value| (value, item.place.as_ref())),
            Given::List(..) | Given::Tables(..) | Given::Settings(..) => None,
        }
    }

    pub(crate) fn value<T: Any + Clone>(&self, name: Name<T>) -> Option<T> {
        self.one(name).map(|(value, _)| value)
    }

    pub(crate) fn list<T: Any + Clone>(&self, name: Name<T>) -> Vec<(T, Option<&Place>)> {
        match self.given.get(name.path()) {
            Some(Given::List(items, _)) => items
                .iter()
                .filter_map(|item| item.get().map(|value| (value, item.place.as_ref())))
                .collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn tables(&self, name: Name<Tables>) -> &[Row] {
        match self.given.get(name.path()) {
            Some(Given::Tables(rows, _)) => rows,
            _ => &[],
        }
    }

    pub(crate) fn is_broken(&self, path: &str) -> bool {
        self.broken.contains(path)
    }
}
