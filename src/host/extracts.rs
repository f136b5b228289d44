#![allow(clippy::disallowed_methods, reason = "this file is the door to what it keeps")]

//! Extracts of files that every run reads, kept below [`state::RUN_DIR`]. Hundreds of
//! interfaces may have a run each, and a profile each whose name says nothing of the
//! interface: the first run reads the files, and the others read its extract of them all.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::lock::Locks;
use super::{ReadError, Root, clock, state};

/// No file of which there is an extract is larger, bytes.
const LIMIT: u64 = 1 << 20;
/// Nor are all the extracts.
const KEPT_LIMIT: u64 = 64 << 20;
/// How long another run that reads the files is waited for, microseconds.
const PATIENCE_USEC: u64 = 2_000_000;
/// A file that has been written so shortly ago may be written again without a trace: the time
/// of a change is that of the kernel's last tick.
const SETTLED: Duration = Duration::from_secs(1);

/// One file, as it was when it was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    stamp: Stamp,
    text: String,
}

/// What differs once a file is written or replaced: inode, size, and the time of the last
/// change in seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp(u64, u64, i64, i64);

impl Stamp {
    fn of(path: &str) -> Option<Self> {
        let meta = fs::metadata(path).ok()?;
        Some(Self(meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec()))
    }

    fn is_settled(self, now: SystemTime) -> bool {
        let changed = UNIX_EPOCH + Duration::from_secs(self.2.try_into().unwrap_or_default());
        now > changed + SETTLED
    }
}

type All = BTreeMap<String, Kept>;

/// What `extract` makes of each of `paths`, with the path. Of a copy of a tree, or where
/// nothing can be kept, each file is read. What cannot be read is left out.
pub fn of(
    root: &Root,
    name: &str,
    paths: Vec<String>,
    extract: impl Fn(&str, &str) -> String,
) -> Vec<(String, String)> {
    let read = |path: &str| match root.text(path, LIMIT) {
        Ok(text) => Some(extract(path, &text)),
        // It stays so until it is written again.
        Err(ReadError::NotText { .. } | ReadError::TooLarge { .. }) => Some(String::new()),
        Err(_) => None,
    };
    if !root.is_live() || paths.is_empty() {
        let texts = paths.into_iter().map(|path| (read(&path), path));
        return texts.filter_map(|(text, path)| Some((path, text?))).collect();
    }
    let file = format!("{name}.json");
    let now = SystemTime::now();
    let stamped = paths.into_iter().filter_map(|path| Some((Stamp::of(&path)?, path)));
    let stamped: Vec<(Stamp, String)> = stamped.collect();
    let mut all = load(root, &file);
    if !stamped.iter().all(|(stamp, path)| is_kept(&all, path, *stamp)) {
        let until = clock::monotonic_usec() + PATIENCE_USEC;
        let held = Locks::in_run().and_then(|locks| locks.take_until(name, until));
        if held.is_ok() {
            all = load(root, &file);
        }
        let is_new = fill(&mut all, &stamped, read);
        if held.is_ok() && is_new {
            let settled = all.iter().filter(|(_, kept)| kept.stamp.is_settled(now));
            let settled: BTreeMap<&String, &Kept> = settled.collect();
            let json = serde_json::to_string(&settled).unwrap_or_default();
            if let Err((path, e)) = state::write_private(&file, &json) {
                tracing::debug!("{}: {}", path.display(), super::answer(&e));
            }
        }
    }
    let texts = stamped.into_iter().map(|(_, path)| (all.remove(&path), path));
    texts.filter_map(|(kept, path)| Some((path, kept?.text))).collect()
}

/// What is kept; nothing if there is nothing, or not for us to read.
fn load(root: &Root, file: &str) -> All {
    let text = root.text(&format!("{}/{file}", state::RUN_DIR), KEPT_LIMIT);
    text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn is_kept(all: &All, path: &str, stamp: Stamp) -> bool {
    all.get(path).is_some_and(|kept| kept.stamp == stamp)
}

/// Have `all` hold the files of `stamped`, and no others: those that it does not hold as they
/// are now are read. True if any was.
fn fill(all: &mut All, stamped: &[(Stamp, String)], read: impl Fn(&str) -> Option<String>) -> bool {
    let mut before = std::mem::take(all);
    let mut is_new = false;
    for (stamp, path) in stamped {
        if is_kept(&before, path, *stamp) {
            all.extend(before.remove_entry(path));
        } else if let Some(text) = read(path) {
            is_new = true;
            all.insert(path.clone(), Kept { stamp: *stamp, text });
        }
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(dir: &tempfile::TempDir, name: &str) -> (Stamp, String) {
        let path = dir.path().join(name).to_str().expect("text").to_owned();
        (Stamp::of(&path).expect("file"), path)
    }

    #[test]
    fn a_file_is_read_again_once_it_is_written_or_replaced() {
        let dir = crate::host::testing::tree(&[("a", "1"), ("b", "2")], &[]);
        let read = std::cell::RefCell::new(Vec::new());
        let mut all = All::new();
        let mut fills = || {
            let files = [stamp(&dir, "a"), stamp(&dir, "b")];
            let is_new = fill(&mut all, &files, |path| {
                read.borrow_mut().push(path.rsplit('/').next().expect("name").to_owned());
                Some(fs::read_to_string(path).expect("text"))
            });
            let texts: Vec<String> = all.values().map(|kept| kept.text.clone()).collect();
            (is_new, read.take().concat(), texts.concat())
        };
        assert_eq!(fills(), (true, "ab".to_owned(), "12".to_owned()));
        assert_eq!(fills(), (false, String::new(), "12".to_owned()));
        fs::write(dir.path().join("b"), "34").expect("write");
        assert_eq!(fills(), (true, "b".to_owned(), "134".to_owned()));
        fs::write(dir.path().join("c"), "5").expect("write");
        fs::rename(dir.path().join("c"), dir.path().join("a")).expect("rename");
        assert_eq!(fills(), (true, "a".to_owned(), "534".to_owned()));
    }

    #[test]
    fn what_was_written_just_now_is_not_kept() {
        let dir = crate::host::testing::tree(&[("a", "1")], &[]);
        let (stamp, _) = stamp(&dir, "a");
        let now = SystemTime::now();
        assert!(!stamp.is_settled(now));
        assert!(stamp.is_settled(now + 2 * SETTLED));
    }
}
