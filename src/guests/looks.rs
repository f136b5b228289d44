//! When VFs are looked at: who waits for one is not to be told late, and nobody
//! is started on what was seen a while ago.

use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;

use super::vf::Need;
use super::vf_reader::{Seen, VfReader};
use crate::names::PciAddress;

/// How often VFs are looked at while a guest waits for one, although nothing
/// was heard: a GUID written by hand to MLNX_OFED's sysfs makes no event.
const EVERY_USEC: u64 = 5_000_000;

/// The looks at VFs, one at a time.
#[derive(Debug)]
pub(super) struct Looks<'a> {
    reader: VfReader<'a>,
    /// When the next one is due, microseconds of CLOCK_MONOTONIC.
    due_usec: u64,
}

impl<'a> Looks<'a> {
    /// The first one is due at once.
    pub(super) const fn new(reader: VfReader<'a>) -> Self {
        Self { reader, due_usec: 0 }
    }

    /// The next one is due at once: a VF may have changed.
    pub(super) const fn hurry(&mut self) {
        self.due_usec = 0;
    }

    /// True if the next one is due.
    pub(super) const fn is_due(&self, now: u64) -> bool {
        now >= self.due_usec
    }

    /// When the next one is due.
    pub(super) const fn due_usec(&self) -> u64 {
        self.due_usec
    }

    /// True while one is under way.
    pub(super) const fn is_under_way(&self) -> bool {
        self.reader.is_looking()
    }

    /// When the one under way is given up.
    pub(super) fn until_usec(&self) -> Option<u64> {
        self.reader.until_usec()
    }

    /// What can be read when an answer to the one under way has come.
    pub(super) fn answers_come(&self) -> Option<BorrowedFd<'_>> {
        self.reader.answers_come()
    }

    /// Begin to look at these.
    pub(super) fn begin(&mut self, needs: BTreeSet<Need>, now: u64) {
        self.reader.begin(needs.into_iter());
        self.due_usec = now + EVERY_USEC;
    }

    /// What the one under way has shown, if it has ended, and what could not be
    /// read or asked since the last call, one line each.
    pub(super) fn end(&mut self) -> (Option<Seen>, BTreeSet<String>) {
        let seen = self.reader.seen();
        (seen, std::mem::take(&mut self.reader.problems))
    }

    /// True if this is an InfiniBand VF of this host.
    pub(super) fn is_hca_vf(&self, pci: PciAddress) -> bool {
        self.reader.is_hca_vf(pci)
    }
}
