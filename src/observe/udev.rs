//! udev's own record of a device, `/run/udev/data/ID`: what libudev's
//! `udev_device_get_is_initialized()` looks for (systemd,
//! `src/libsystemd/sd-device/sd-device.c`). It appears when udevd has finished
//! the rules of the first event, and carries ID_RENAMING=1 while a rename that
//! udevd began has not come back as a `move` event.

use std::collections::BTreeSet;

use super::{Look, UdevState};
use crate::host::Root;

/// A device's record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// When udevd first finished with it, microseconds of CLOCK_MONOTONIC.
    pub initialized_usec: Option<u64>,
    /// udevd has begun to rename it.
    pub renaming: bool,
}

/// The record of `id`: `n3` for the netdev with index 3, `+pci:0000:4b:00.0`.
pub(super) fn record(look: &mut Look<'_>, id: &str) -> Option<Record> {
    let text = look.attribute(&format!("/run/udev/data/{id}"))?;
    Some(parse(&text))
}

pub(super) fn state(root: &Root, heard: &BTreeSet<String>) -> UdevState {
    UdevState {
        heard: heard.clone(),
        running: root.exists("/run/udev/control"),
        settled: !root.exists("/run/udev/queue"),
    }
}

fn parse(text: &str) -> Record {
    let mut record = Record::default();
    for line in text.lines() {
        if let Some(usec) = line.strip_prefix("I:") {
            record.initialized_usec = usec.parse().ok();
        } else if line == "E:ID_RENAMING=1" {
            record.renaming = true;
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_tells_time_and_pending_rename() {
        assert_eq!(
            parse("I:1221000\nE:ID_RENAMING=1\nE:ID_NET_NAME=v0\nG:systemd\nV:1"),
            Record { initialized_usec: Some(1_221_000), renaming: true }
        );
        assert_eq!(parse("I:x\nE:ID_RENAMING=0"), Record::default());
    }
}
