//! What udev has stored of a netdev, and how far udevd is. The record appears when
//! udevd has finished the rules of the netdev's first event, and has ID_RENAMING=1
//! while a rename that udevd began has not come back as a `move` event.

use std::collections::BTreeSet;

use super::{Look, UdevState};
use crate::host::Root;
use crate::host::udev_record::{self, Properties, USEC_INITIALIZED};
use crate::names::IfName;

/// A device's record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// When udevd first finished with it, microseconds of CLOCK_MONOTONIC.
    pub initialized_usec: Option<u64>,
    /// udevd has begun to rename it.
    pub renaming: bool,
}

/// The record of the netdev that has this name and index.
pub(super) fn record(look: &mut Look<'_>, name: &IfName, ifindex: u32) -> Option<Record> {
    let stored = udev_record::of_netdev(look.root, name, ifindex);
    look.note(stored).flatten().map(|properties| meaning(&properties))
}

pub(super) fn state(root: &Root, heard: &BTreeSet<String>) -> UdevState {
    UdevState {
        heard: heard.clone(),
        running: root.exists("/run/udev/control"),
        settled: !root.exists("/run/udev/queue"),
    }
}

fn meaning(properties: &Properties) -> Record {
    Record {
        initialized_usec: properties.get(USEC_INITIALIZED).and_then(|usec| usec.parse().ok()),
        renaming: properties.get("ID_RENAMING").is_some_and(|value| value == "1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(properties: &[(&str, &str)]) -> Record {
        let owned = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        meaning(&owned.collect())
    }

    #[test]
    fn a_record_tells_time_and_pending_rename() {
        assert_eq!(
            record(&[(USEC_INITIALIZED, "1221000"), ("ID_RENAMING", "1"), ("ID_NET_NAME", "v0")]),
            Record { initialized_usec: Some(1_221_000), renaming: true }
        );
        assert_eq!(record(&[(USEC_INITIALIZED, "x"), ("ID_RENAMING", "0")]), Record::default());
    }
}
