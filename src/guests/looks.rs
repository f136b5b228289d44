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

/// A look at all VFs is followed by a pause that is so many times as long as the look was:
/// while hundreds of VFs come, each of them is an event. Where VFs are few, a look takes
/// milliseconds.
const PAUSE_TIMES: u64 = 4;
/// No pause is longer: a PF that does not answer makes a look last for seconds.
const LONGEST_PAUSE_USEC: u64 = 250_000;

/// The looks at VFs, one at a time. Times are microseconds of CLOCK_MONOTONIC.
#[derive(Debug)]
pub(super) struct Looks<'a> {
    reader: VfReader<'a>,
    /// When the next one at all VFs is due.
    due_usec: u64,
    /// When the pause after the last one is over.
    pause_until_usec: u64,
    /// When the one under way began, if it is one at all VFs.
    begun_usec: Option<u64>,
}

impl<'a> Looks<'a> {
    /// The first one is due at once.
    pub(super) const fn new(reader: VfReader<'a>) -> Self {
        Self { reader, due_usec: 0, pause_until_usec: 0, begun_usec: None }
    }

    /// The next one is due at once, or after the pause: a VF may have changed.
    pub(super) const fn hurry(&mut self) {
        self.due_usec = 0;
    }

    /// True if the next one at all VFs is due.
    pub(super) fn is_due(&self, now: u64) -> bool {
        now >= self.due_usec()
    }

    /// True if the next one at all VFs waits for nothing but the pause.
    pub(super) const fn is_paused(&self) -> bool {
        self.due_usec == 0
    }

    /// When the next one at all VFs is due.
    pub(super) fn due_usec(&self) -> u64 {
        self.due_usec.max(self.pause_until_usec)
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

    /// Begin to look at these, which are all that are watched.
    pub(super) fn begin_all(&mut self, needs: BTreeSet<Need>, now: u64) {
        self.begun_usec = Some(now);
        self.due_usec = now + EVERY_USEC;
        self.reader.begin(needs.into_iter());
    }

    /// Begin to look at these, since what they are for may start.
    pub(super) fn begin_some(&mut self, needs: BTreeSet<Need>) {
        self.begun_usec = None;
        self.reader.begin(needs.into_iter());
    }

    /// What the one under way has shown, if it has ended, and what could not be
    /// read or asked since the last call, one line each.
    pub(super) fn end(&mut self, now: u64) -> (Option<Seen>, BTreeSet<String>) {
        let seen = self.reader.seen();
        if seen.is_some()
            && let Some(begun) = self.begun_usec.take()
        {
            let pause = PAUSE_TIMES * now.saturating_sub(begun);
            self.pause_until_usec = now + pause.min(LONGEST_PAUSE_USEC);
        }
        (seen, std::mem::take(&mut self.reader.problems))
    }

    /// True if this is an InfiniBand VF of this host.
    pub(super) fn is_hca_vf(&self, pci: PciAddress) -> bool {
        self.reader.is_hca_vf(pci)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::host::Root;

    #[test]
    fn a_look_at_all_is_followed_by_a_pause_and_one_for_a_start_is_not() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let root = Root::copy_at(dir.path()).expect("tree");
        let config = Config::default();
        let mut looks = Looks::new(VfReader::new(&config, &root));
        assert!(looks.is_due(0));
        let ended = |looks: &mut Looks<'_>, now| looks.end(now).0.expect("nobody is asked");
        looks.begin_all(BTreeSet::new(), 1_000);
        assert!(looks.is_under_way());
        ended(&mut looks, 1_500);
        assert_eq!(looks.due_usec(), 1_000 + EVERY_USEC);
        assert!(!looks.is_paused());
        looks.hurry();
        assert!(looks.is_paused());
        assert_eq!(looks.due_usec(), 1_500 + 4 * 500);
        looks.begin_some(BTreeSet::new());
        ended(&mut looks, 1_000_000);
        assert_eq!(looks.due_usec(), 1_500 + 4 * 500);
        // Somebody did not answer.
        looks.begin_all(BTreeSet::new(), 2_000_000);
        looks.hurry();
        ended(&mut looks, 7_000_000);
        assert_eq!(looks.due_usec(), 7_000_000 + LONGEST_PAUSE_USEC);
    }
}
