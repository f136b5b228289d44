//! `ibprov migrate`: hands a node over from openibd and site scripts, and back.

use super::print;
use crate::cli::{Common, MigrateArgs};
use crate::graph::files;
use crate::host::lock::{LockError, Locks};
use crate::host::{Root, process, site_files};
use crate::migrate::{Record, Step, back_steps, carry_out, find, proof, record};
use crate::model::{
    Code, Finding, Severity,
    migrate::{Change, Migration},
};
use crate::show;

/// The object of the lock of a run that changes something.
const LOCK: &str = "migrate";

/// Show what would be done, or do it.
///
/// # Errors
/// It cannot begin; standard output is gone.
pub fn run(args: &MigrateArgs, root: &Root, common: &Common) -> anyhow::Result<u8> {
    let back = if args.back { " --back" } else { "" };
    let lock = match args.apply && root.is_live() {
        true if !process::is_root() => anyhow::bail!(
            "`ibprov migrate{back} --apply` changes files that belong to root: use sudo, or leave --apply out to see what would be changed"
        ),
        true => Some(lock()?),
        false => None,
    };
    let recorded = Record::read(root).map_err(|why| anyhow::anyhow!("{why}"))?;
    let report = match args.back {
        false => forth(root, recorded, args.apply),
        true => undo(root, recorded, args.apply),
    };
    drop(lock);
    print(&report.to_report(), common.format, |screen| {
        screen.page(&show::migrate::text(&report, screen))
    })
}

fn lock() -> anyhow::Result<crate::host::lock::Held> {
    let taken = Locks::in_run().and_then(|locks| locks.try_take(LOCK));
    taken.map_err(|e| match e {
        LockError::Busy { .. } => anyhow::anyhow!("another `ibprov migrate` is running: {e}"),
        LockError::Unusable { .. } => anyhow::anyhow!("{e}"),
    })
}

fn forth(root: &Root, recorded: Option<Record>, apply: bool) -> Migration {
    let before = files::graph(root);
    let found = find(root, recorded.as_ref());
    let mut report = Migration {
        items: found.items,
        changes: found.changes,
        record: record::PATH.to_owned(),
        problems: found.problems,
        ..Migration::default()
    };
    let after = files::graph_with(root, &carry_out::planned(&report.changes));
    report.problems.extend(proof::judge(root, &before, &after));
    if apply && !report.problems.iter().any(|p| p.severity == Severity::Error) {
        let mut record = Record::with(recorded, &report.changes);
        make(root, &mut report, |root| record.write(root));
        // Once more, from what is there.
        let made = proof::judge(root, &before, &files::graph(root));
        let errors = made.into_iter().filter(|finding| finding.severity == Severity::Error);
        report.problems.extend(errors);
    }
    sorted(report)
}

fn undo(root: &Root, recorded: Option<Record>, apply: bool) -> Migration {
    let mut report =
        Migration { back: true, record: record::PATH.to_owned(), ..Migration::default() };
    let Some(mut recorded) = recorded else { return report };
    let mut left: Vec<String> = Vec::new();
    for step in back_steps(root, &recorded) {
        match step {
            Step::Undo(change) => report.changes.push(change),
            Step::Undone => {}
            Step::InUse(path) => report.problems.push(
                Finding::new(
                    Code::Notice,
                    Severity::Info,
                    "the migration created this directory, which has other files now and is left",
                )
                .about(path),
            ),
            Step::Changed(finding) => {
                left.extend(finding.objects.iter().map(ToString::to_string));
                report.problems.push(finding);
            }
        }
    }
    let after = files::graph_with(root, &carry_out::planned(&report.changes));
    report.problems.extend(proof::judge_back(&after, &report.changes));
    if apply {
        let swept: Vec<String> = recorded.changes.iter().map(|c| c.path.clone()).collect();
        make(root, &mut report, |root| {
            // What a run that was killed has left is no part of what was there before.
            for path in &swept {
                drop(site_files::sweep(root, path));
            }
            Ok(())
        });
        if !report.problems.iter().any(|p| p.severity == Severity::Error) {
            recorded.changes.retain(|change| left.contains(&change.path));
            let ended = match recorded.changes.is_empty() {
                true => recorded.remove(root),
                // What it keeps is the only copy of what was there.
                false => recorded.write(root),
            };
            let failed = ended.err().map(|why| Finding::error(Code::StepFailed, why));
            report.problems.extend(failed);
        }
    }
    sorted(report)
}

/// Make the changes of the report after `first`, and have systemd and udev read them.
fn make(root: &Root, report: &mut Migration, first: impl FnOnce(&Root) -> Result<(), String>) {
    report.applied = true;
    let planned: Vec<Change> = std::mem::take(&mut report.changes);
    if planned.is_empty() && !report.back {
        return;
    }
    if let Err(why) = first(root) {
        report.problems.push(Finding::error(Code::StepFailed, why));
        return;
    }
    let (done, failed) = carry_out::carry_out(root, &planned);
    report.changes = done;
    report.problems.extend(failed);
    if !report.changes.is_empty() {
        report.problems.extend(site_files::reload(root).into_iter().map(Finding::not_read));
    }
}

fn sorted(mut report: Migration) -> Migration {
    Finding::worst_first(&mut report.problems);
    report
}
