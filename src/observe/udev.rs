//! What udev has stored of a netdev, and how far udevd is. The record appears when
//! udevd has finished the rules of the netdev's first event, and has ID_RENAMING=1
//! while a rename that udevd began has not come back as a `move` event. And the files of
//! rules that are in force.

use std::collections::BTreeSet;

use super::Look;
use crate::host::udev_record::{self, Properties, USEC_INITIALIZED};
use crate::host::{ReadError, Root};
use crate::model::status::Udev;
use crate::names::{IfName, Moment};

/// Where udev looks for rules, what counts first (udev(7)).
const RULE_DIRS: [&str; 5] = [
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
];
/// No such file is larger, bytes.
const LIMIT: u64 = 1 << 20;

/// The file of rules of this name that counts, path and text, unless it is a mask.
pub fn rule(root: &Root, name: &str) -> Option<(String, String)> {
    unmasked(root, RULE_DIRS, name)
}

/// The names of all files of rules, and what could not be read.
pub fn rules(root: &Root) -> (BTreeSet<String>, Vec<ReadError>) {
    let (mut names, mut problems) = (BTreeSet::new(), Vec::new());
    for dir in RULE_DIRS {
        match root.list_or_empty(dir) {
            Ok(all) => names.extend(all.into_iter().filter(|name| name.ends_with(".rules"))),
            Err(e) => problems.push(e),
        }
    }
    (names, problems)
}

/// The file of this name that counts, unless it is a mask: a link to /dev/null, or
/// empty.
pub(super) fn unmasked<const N: usize>(
    root: &Root,
    dirs: [&str; N],
    name: &str,
) -> Option<(String, String)> {
    let path = dirs.map(|dir| format!("{dir}/{name}")).into_iter().find(|path| {
        // A link to /dev/null is there, wherever it ends in a copied tree.
        root.exists(path) || root.is_link(path)
    })?;
    if root.link_name(&path).is_ok_and(|target| target == "null") {
        return None;
    }
    let text = root.text(&path, LIMIT).ok().filter(|text| !text.trim().is_empty())?;
    Some((path, text))
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// When udevd first finished with it.
    pub initialized: Option<Moment>,
    /// udevd has begun to rename it.
    pub renaming: bool,
}

/// The record of the netdev that has this name and index.
pub(super) fn record(look: &mut Look<'_>, name: &IfName, ifindex: u32) -> Option<Record> {
    let stored = udev_record::of_netdev(look.root, name, ifindex);
    look.note(stored).flatten().map(|properties| meaning(&properties))
}

/// When udevd first finished with the netdev that has this name and index.
pub fn initialized(root: &Root, name: &IfName, ifindex: u32) -> Option<Moment> {
    record(&mut Look::new(root), name, ifindex)?.initialized
}

/// udevd has no event queued or in work.
pub fn is_settled(root: &Root) -> bool {
    !root.exists("/run/udev/queue")
}

/// False of a copy that does not have what udev keeps.
fn is_kept(root: &Root) -> bool {
    root.is_live() || root.exists("/run/udev")
}

/// Nothing of a netdev with `record` is known to change its name still.
pub(super) fn is_named(root: &Root, record: Option<&Record>) -> bool {
    record.map_or_else(|| !is_kept(root), |record| !record.renaming)
}

/// A socket is in no archive: a copy without one does not tell.
fn is_running(root: &Root) -> Option<bool> {
    let is = root.exists("/run/udev/control");
    (is || root.is_live()).then_some(is)
}

pub(super) fn state(root: &Root, heard: &BTreeSet<String>) -> Udev {
    Udev { heard: heard.clone(), running: is_running(root), settled: is_settled(root) }
}

fn meaning(properties: &Properties) -> Record {
    let usec = properties.get(USEC_INITIALIZED);
    Record {
        initialized: usec.and_then(|usec| usec.parse().ok()).map(Moment::from_usec),
        renaming: properties.get("ID_RENAMING").is_some_and(|value| value == "1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::at;

    fn record(properties: &[(&str, &str)]) -> Record {
        let owned = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        meaning(&owned.collect())
    }

    #[test]
    fn a_record_tells_time_and_pending_rename() {
        assert_eq!(
            record(&[(USEC_INITIALIZED, "1221000"), ("ID_RENAMING", "1"), ("ID_NET_NAME", "v0")]),
            Record { initialized: Some(at(1_221_000)), renaming: true }
        );
        assert_eq!(record(&[(USEC_INITIALIZED, "x"), ("ID_RENAMING", "0")]), Record::default());
    }
}
