//! What a migration has changed, kept so that it can be undone.

use serde::{Deserialize, Serialize};

use crate::host::{Root, answer, site_files};
use crate::model::migrate::Change;
use crate::names::PathState;

/// Where it is. It is there as long as a migration can be undone.
pub const PATH: &str = "/var/lib/ibprov/migration.json";
/// The version of the file's format.
const FORMAT: u32 = 1;
/// No record is larger, bytes.
const LIMIT: u64 = 16 << 20;

/// What was changed, each path once, in the order of the changes. It is written before the
/// first of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    format: u32,
    /// The directories that were made for this file.
    directories: Vec<String>,
    /// What was there, and what ibprov has put there.
    pub changes: Vec<Change>,
}

impl Record {
    /// The record of the tree, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or is not a record of this format; a sentence.
    pub fn read(root: &Root) -> Result<Option<Self>, String> {
        let text = match root.text(PATH, LIMIT) {
            Err(e) if e.is_absent() => return Ok(None),
            other => other.map_err(|e| format!("cannot read the record of the migration: {e}"))?,
        };
        let record: Self = serde_json::from_str(&text)
            .map_err(|e| format!("{PATH} is not a record of a migration: {e}"))?;
        if record.format != FORMAT {
            let format = record.format;
            return Err(format!(
                "{PATH} has format {format}, but this ibprov reads format {FORMAT}"
            ));
        }
        let is_plain = |path: &String| {
            path.starts_with('/') && path.split('/').skip(1).all(|p| !matches!(p, "" | "." | ".."))
        };
        let paths = record.changes.iter().map(|change| &change.path).chain(&record.directories);
        match paths.into_iter().find(|path| !is_plain(path)) {
            Some(path) => Err(format!("{PATH}: {path:?} is not an absolute path without \"..\"")),
            None => Ok(Some(record)),
        }
    }

    /// `old`, or a new one, with what is now about to be changed.
    pub fn with(old: Option<Self>, planned: &[Change]) -> Self {
        let new = Self { format: FORMAT, directories: Vec::new(), changes: Vec::new() };
        let mut record = old.unwrap_or(new);
        for change in planned {
            match record.changes.iter_mut().find(|known| known.path == change.path) {
                Some(known) => {
                    // What somebody has put there since is what to put back.
                    if !change.before.is_same(&known.after) {
                        known.before = change.before.clone();
                    }
                    known.after = change.after.clone();
                }
                None => record.changes.push(change.clone()),
            }
        }
        record
    }

    /// Write it to the disk.
    ///
    /// # Errors
    /// The path, and what the system answered.
    pub fn write(&mut self, root: &Root) -> Result<(), String> {
        let failed = |path: &str, e: &std::io::Error| {
            format!(
                "cannot write the record {PATH}, without which nothing is changed: {path}: {}",
                answer(e)
            )
        };
        for (at, _) in PATH.match_indices('/').skip(1) {
            let Some(dir) = PATH.get(..at) else { continue };
            let there = site_files::state(root, dir).map_err(|e| failed(dir, &e))?;
            if there == PathState::Absent {
                site_files::put(root, dir, &PathState::Directory).map_err(|e| failed(dir, &e))?;
                self.directories.push(dir.to_owned());
            }
        }
        let text = serde_json::to_string_pretty(self).map_err(|e| format!("{PATH}: {e}"))?;
        let file = PathState::own_file(format!("{text}\n"));
        site_files::put(root, PATH, &file).map_err(|e| failed(PATH, &e))
    }

    /// Remove it, with the directories that were made for it, as far as they are empty.
    ///
    /// # Errors
    /// The path, and what the system answered.
    pub fn remove(&self, root: &Root) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("cannot remove {PATH}: {}", answer(&e));
        site_files::put(root, PATH, &PathState::Absent).map_err(failed)?;
        for dir in self.directories.iter().rev() {
            // Others may have put something there: then it stays.
            if site_files::put(root, dir, &PathState::Absent).is_err() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;

    fn change(before: PathState, after: PathState) -> Change {
        Change { path: "/etc/x".to_owned(), before, after }
    }

    #[test]
    fn what_was_there_first_is_kept_and_what_somebody_put_there_since_replaces_it() {
        let [theirs, ours, newer] = ["theirs", "ours", "newer"].map(PathState::own_file);
        let first = Record::with(None, &[change(theirs.clone(), ours.clone())]);
        // Our own file is brought up to date.
        let again = Record::with(Some(first.clone()), &[change(ours.clone(), newer.clone())]);
        assert_eq!(again.changes, [change(theirs, newer.clone())]);
        // An update of the package has replaced it.
        let again = Record::with(Some(first), &[change(newer.clone(), ours.clone())]);
        assert_eq!(again.changes, [change(newer, ours)]);
    }

    #[test]
    fn it_reads_back_and_goes_without_a_trace() {
        let dir = tree(&[("var/log/x", "")], &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let mut record =
            Record::with(None, &[change(PathState::Absent, PathState::link("/dev/null"))]);
        record.write(&root).expect("written");
        assert_eq!(Record::read(&root), Ok(Some(record.clone())));
        record.remove(&root).expect("removed");
        assert_eq!(root.list("/var").expect("list"), ["log"]);
        assert_eq!(Record::read(&root), Ok(None));
    }

    #[test]
    fn a_record_that_leads_elsewhere_or_is_of_another_format_is_refused() {
        for text in [
            "{}",
            "{\"format\": 2, \"directories\": [], \"changes\": []}",
            "{\"format\": 1, \"directories\": [\"/var/../etc\"], \"changes\": []}",
            "{\"format\": 1, \"directories\": [\"etc\"], \"changes\": []}",
        ] {
            let dir = tree(&[("var/lib/ibprov/migration.json", text)], &[]);
            let root = Root::copy_at(dir.path()).expect("root");
            assert!(Record::read(&root).is_err(), "{text}");
        }
    }
}
