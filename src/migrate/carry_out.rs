//! Changes one path after the other.

use crate::graph::planned::Planned;
use crate::host::{Root, answer, site_files};
use crate::model::{Code, Finding, migrate::Change};
use crate::names::PathState;

use super::Record;

/// What undoing one change of a record comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// What is there is put back.
    Undo(Change),
    /// It is as it was before the migration.
    Undone,
    /// A directory that was made holds other files by now, and stays.
    InUse(String),
    /// Somebody has changed it since, and it stays: what is to be known of it.
    Changed(Finding),
}

/// How to undo what `record` has, the last change first.
pub fn back_steps(root: &Root, record: &Record) -> Vec<Step> {
    let mut gone: Vec<&str> = Vec::new();
    let mut steps = Vec::new();
    for change in record.changes.iter().rev() {
        let step = back_step(root, change, &gone);
        if matches!(&step, Step::Undo(change) if change.after == PathState::Absent) {
            gone.push(&change.path);
        }
        steps.push(step);
    }
    steps
}

fn back_step(root: &Root, change: &Change, gone: &[&str]) -> Step {
    let path = &change.path;
    let changed = |what: String| {
        let message = format!(
            "{what} since the migration, and is left. Before the migration there was {}",
            change.before
        );
        Step::Changed(Finding::warning(Code::ChangedSince, message).about(path))
    };
    let now = match site_files::state(root, path) {
        Ok(now) => now,
        Err(e) => {
            return changed(format!(
                "the path cannot be compared ({}), may have been changed",
                answer(&e)
            ));
        }
    };
    if now.is_same(&change.before) {
        return Step::Undone;
    }
    if !now.is_same(&change.after) {
        return changed(format!("the path was changed to {now}"));
    }
    if change.after == PathState::Directory {
        let left = root.list_or_empty(path).unwrap_or_default();
        if left.iter().any(|name| !gone.contains(&format!("{path}/{name}").as_str())) {
            return Step::InUse(path.clone());
        }
    }
    Step::Undo(change.clone().reversed())
}

/// Make these changes, each only if what is there is what it was planned for. The record is
/// on the disk by now. Gives those that were made, and what stopped the others.
pub fn carry_out(root: &Root, changes: &[Change]) -> (Vec<Change>, Option<Finding>) {
    let mut done = Vec::new();
    for change in changes {
        let failed =
            |message: String| Some(Finding::error(Code::StepFailed, message).about(&change.path));
        match site_files::state(root, &change.path) {
            Ok(now) if now.is_same(&change.before) => {}
            Ok(now) => {
                let message =
                    format!("the path was changed in the meantime to {now}: run the command again");
                return (done, failed(message));
            }
            Err(e) => return (done, failed(format!("cannot be read: {}", answer(&e)))),
        }
        if let Err(e) = site_files::put(root, &change.path, &change.after) {
            return (done, failed(format!("cannot {change}: {}", answer(&e))));
        }
        done.push(change.clone());
    }
    (done, None)
}

/// What `changes` come to, for the graph of the next boot.
pub fn planned(changes: &[Change]) -> Planned {
    changes.iter().map(|change| (change.path.clone(), change.after.clone())).collect()
}
