//! A tree as it would be with files, links and directories that are planned.

use std::collections::{BTreeMap, BTreeSet};

use crate::host::{ReadError, Root};
use crate::names::PathState;

/// What is planned, by path.
pub type Planned = BTreeMap<String, PathState>;

/// A tree and what is planned for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree<'a> {
    pub(super) root: &'a Root,
    pub(super) planned: &'a Planned,
}

impl Tree<'_> {
    /// As [`Root::list_or_empty`].
    pub(super) fn list_or_empty(&self, dir: &str) -> Result<Vec<String>, ReadError> {
        let mut names: BTreeSet<String> = self.root.list_or_empty(dir)?.into_iter().collect();
        for (path, state) in self.planned {
            let Some((in_dir, name)) = path.rsplit_once('/') else { continue };
            if in_dir != dir {
                continue;
            }
            match state {
                PathState::Absent => names.remove(name),
                _ => names.insert(name.to_owned()),
            };
        }
        Ok(names.into_iter().collect())
    }

    /// The last component of the target of a link; none of what is no link.
    pub(super) fn link_name(&self, path: &str) -> Option<String> {
        match self.planned.get(path) {
            None => self.root.link_name(path).ok(),
            Some(PathState::Link { target }) => {
                let name = target.rsplit('/').next().unwrap_or_default();
                (!name.is_empty()).then(|| name.to_owned())
            }
            Some(_) => None,
        }
    }

    /// As [`Root::text`].
    pub(super) fn text(&self, path: &str, limit: u64) -> Result<String, ReadError> {
        match self.planned.get(path) {
            Some(PathState::File { text, .. }) => Ok(text.clone()),
            Some(PathState::Link { target }) if target.starts_with('/') => {
                self.root.text(target, limit)
            }
            Some(PathState::Link { target }) => {
                let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
                self.root.text(&format!("{dir}/{target}"), limit)
            }
            _ => self.root.text(path, limit),
        }
    }
}
