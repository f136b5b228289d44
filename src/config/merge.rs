//! The files' drafts laid over the defaults, weakest first.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use strum::VariantArray as _;

use super::draft::{Draft, Given, Item, Row, default_of};
use super::keys::{
    BOOT_IGNORE, HOST_NUMBER, HOST_NUMBER_FILE, HOST_NUMBER_RULE, HOST_SITE, KEYS, MODULES_EXCLUDE,
    MODULES_LOAD, Name, PF, Tables,
};
use super::problem::{Place, Problems};
use super::withheld::{Part, SELECTORS, Withheld};

/// What holds for each key after the last file.
#[derive(Debug, Clone)]
pub(crate) struct Merged {
    given: BTreeMap<&'static str, Given>,
    /// Keys that some file gave badly.
    broken: BTreeSet<&'static str>,
    /// Keys of whose value something is not known.
    lost: BTreeSet<&'static str>,
    /// What has an error.
    parts: BTreeSet<Part>,
    /// A file is not known, which may have replaced any plan, setting, name or guest.
    pub(crate) lacks_file: bool,
}

/// What takes away: it is never left out for a contradiction.
const TAKING: [&str; 2] = [MODULES_EXCLUDE.path(), BOOT_IGNORE.path()];

impl Merged {
    pub(crate) fn defaults() -> Self {
        let given = KEYS.iter().filter_map(|key| Some((key.path, default_of(key)?))).collect();
        Self {
            given,
            broken: BTreeSet::new(),
            lost: BTreeSet::new(),
            parts: BTreeSet::new(),
            lacks_file: false,
        }
    }

    /// Lays one more file over what is there: a later value wins, lists are
    /// appended to, an empty list takes away what was there.
    pub(crate) fn add(&mut self, draft: Draft) {
        self.broken.extend(draft.broken);
        self.parts.extend(draft.parts);
        if draft.unknown {
            self.lack_file();
        }
        for path in &draft.lost {
            if !draft.given.iter().any(|(key, _)| key.path == *path) {
                self.lose(path);
            }
        }
        for (key, new) in draft.given {
            let is_lost = draft.lost.contains(key.path);
            match (self.given.get_mut(key.path), new) {
                (Some(Given::List(old, _)), Given::List(new, _)) if !new.is_empty() => {
                    old.extend(new);
                }
                (Some(Given::Tables(old, _)), Given::Tables(new, _)) if !new.is_empty() => {
                    old.extend(new);
                }
                // What is not known of it was an entry.
                (Some(_), Given::List(..) | Given::Tables(..)) if is_lost => {}
                (_, new) => {
                    self.lost.remove(key.path);
                    self.given.insert(key.path, new);
                }
            }
            if is_lost {
                self.lost.insert(key.path);
            }
        }
    }

    /// The value of the key is not known: the default holds, and of a list what was given; but
    /// the modules to load may have been none.
    fn lose(&mut self, path: &'static str) {
        self.lost.insert(path);
        let is_list = matches!(self.given.get(path), Some(Given::List(..) | Given::Tables(..)));
        if path == MODULES_LOAD.path() {
            self.given.insert(path, Given::List(Vec::new(), None));
        } else if !is_list {
            self.given.remove(path);
            let key = KEYS.iter().find(|key| key.path == path);
            self.given.extend(key.and_then(default_of).map(|given| (path, given)));
        }
    }

    /// A file is not known.
    pub(crate) fn lack_file(&mut self) {
        self.lacks_file = true;
        self.parts.extend(Part::VARIANTS);
    }

    /// Leaves out what has an error in itself.
    pub(crate) fn leave_out_broken(&mut self) {
        self.broken.clear();
        for given in self.given.values_mut() {
            let Given::Tables(rows, _) = given else { continue };
            for row in rows.iter_mut().filter(|row| !row.is_whole()) {
                row.is_left_out = true;
            }
        }
    }

    /// Leaves out what contradicts, as `problems` say. False if that is nothing more than before.
    pub(crate) fn leave_out(&mut self, problems: &Problems) -> bool {
        let mut is_more = false;
        for places in problems.places() {
            let places: Vec<&Place> = places.collect();
            // What takes away holds, unless it has an error alone.
            let of_one =
                places.iter().map(|at| self.leave_out_at(at, false)).fold(false, |a, b| a | b);
            is_more |= of_one || places.iter().any(|at| self.leave_out_at(at, true));
        }
        is_more
    }

    /// True if something was given at `place` that was not left out.
    fn leave_out_at(&mut self, place: &Place, taking: bool) -> bool {
        let mut lost = Vec::new();
        let mut is_more = false;
        for (path, given) in &mut self.given {
            let before = match given {
                Given::Tables(rows, _) => {
                    for row in rows.iter_mut().filter(|row| !row.is_left_out && row.has(place)) {
                        row.is_left_out = true;
                        is_more = true;
                        self.parts.insert(Part::of(path));
                    }
                    continue;
                }
                Given::One(item) => item.place.as_ref() == Some(place),
                Given::List(items, _) if TAKING.contains(path) == taking => {
                    let before = items.len();
                    items.retain(|item| item.place.as_ref() != Some(place));
                    items.len() < before
                }
                Given::List(..) | Given::Settings(..) => false,
            };
            if before {
                lost.push(*path);
            }
        }
        for path in lost {
            is_more = true;
            self.parts.insert(Part::of(path));
            match self.given.get(path) {
                Some(Given::List(..)) => drop(self.lost.insert(path)),
                _ => self.lose(path),
            }
        }
        is_more
    }

    pub(crate) fn withheld(&self) -> Withheld {
        let is_lost = |list: Name<Tables>, selectors: &[&str], number: usize| {
            let rows = self.all(list).iter().filter(|row| row.is_left_out);
            self.lacks_file
                || self.lost.contains(list.path())
                || rows.into_iter().any(|row| row.selects_unknown(selectors, number))
        };
        let lists = SELECTORS.into_iter().filter(|(list, selectors, number)| {
            // The GUIDs of VFs are made of it.
            let of_host = [&*HOST_NUMBER, &HOST_NUMBER_FILE, &HOST_NUMBER_RULE, &HOST_SITE];
            is_lost(*list, selectors, *number)
                || list.path() == PF.path() && of_host.iter().any(|key| self.is_lost(key))
        });
        Withheld { parts: self.parts.clone(), lists: lists.map(|(list, ..)| list.path()).collect() }
    }

    /// Something of the value of that key is not known.
    pub(crate) fn is_lost(&self, path: &str) -> bool {
        self.lost.contains(path)
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Given> {
        self.given.get(path)
    }

    pub(crate) fn one<T: Any + Clone>(&self, name: Name<T>) -> Option<(T, Option<&Place>)> {
        self.given.get(name.path())?.one()
    }

    pub(crate) fn value<T: Any + Clone>(&self, name: Name<T>) -> Option<T> {
        self.one(name).map(|(value, _)| value)
    }

    /// The value of a key that has a default.
    pub(crate) fn set<T: Any + Clone>(&self, name: Name<T>) -> (T, Option<&Place>) {
        self.one(name).unwrap_or_else(|| unreachable!("{} has no default", name.path()))
    }

    pub(crate) fn list<T: Any + Clone>(&self, name: Name<T>) -> Vec<(T, Option<&Place>)> {
        let items = self.given.get(name.path()).map(Given::items).unwrap_or_default();
        items.iter().filter_map(Item::placed).collect()
    }

    /// The tables of that name that are not left out.
    pub(crate) fn tables(&self, name: Name<Tables>) -> impl Iterator<Item = &Row> {
        self.all(name).iter().filter(|row| !row.is_left_out)
    }

    /// Those that are left out too.
    pub(crate) fn all(&self, name: Name<Tables>) -> &[Row] {
        self.given.get(name.path()).map(Given::tables).unwrap_or_default()
    }

    pub(crate) fn is_broken(&self, path: &str) -> bool {
        self.broken.contains(path)
    }
}
