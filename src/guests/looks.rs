//! When VFs are looked at: who waits for one is not to be told late, and nobody
//! is started on what was seen a while ago.

use std::collections::BTreeSet;
use std::time::Duration;

use super::vf::Need;
use super::vf_reader::{VfReader, VfStates};
use crate::names::Moment;

/// How often VFs are looked at while a guest waits for one, although nothing
/// was heard: a GUID written by hand to MLNX_OFED's sysfs makes no event.
const EVERY: Duration = Duration::from_secs(5);

/// A look is followed by a pause that is so many times as long as the look was:
/// while hundreds of VFs come, each of them is an event. Where VFs are few, a look takes
/// milliseconds.
const PAUSE_TIMES: u32 = 4;
/// No pause is longer: a PF that does not answer makes a look last for seconds.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// How long what a look has shown is ground to start a guest, as long as nothing is heard: a
/// look for each of hundreds of guests would keep firmware busy, which netlink asks for all VFs
/// of all PFs each time.
const FRESH: Duration = Duration::from_secs(1);

/// A look that took longer has not shown how VFs are now if something was heard meanwhile.
const LONG: Duration = Duration::from_millis(250);

/// The looks at VFs, one at a time.
#[derive(Debug)]
pub(super) struct VfPoller<'a> {
    pub(super) reader: VfReader<'a>,
    /// When the next one is due.
    due: Moment,
    /// When the pause after the last one is over.
    pause_until: Moment,
    /// When the last one began.
    begun: Moment,
    /// Until when the last one is ground to start a guest.
    fresh_until: Option<Moment>,
    /// It is not, since it took long and something was heard meanwhile.
    is_outdated: bool,
}

impl<'a> VfPoller<'a> {
    /// The first one is due at once.
    pub(super) const fn new(reader: VfReader<'a>) -> Self {
        Self {
            reader,
            due: Moment::START,
            pause_until: Moment::START,
            begun: Moment::START,
            fresh_until: None,
            is_outdated: false,
        }
    }

    /// A VF may have changed, or a guest may start: the next one is due at once, or after the
    /// pause.
    pub(super) const fn invalidate(&mut self) {
        self.due = Moment::START;
        self.fresh_until = None;
    }

    /// True if the next one is due.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        now >= self.due()
    }

    /// True if the next one waits for nothing but the pause.
    pub(super) fn is_paused(&self) -> bool {
        self.due == Moment::START
    }

    /// True if something was heard that was not looked at, and no look has begun since then.
    pub(super) fn is_behind(&self, since: Moment) -> bool {
        self.is_paused() && self.begun < since
    }

    fn due(&self) -> Moment {
        self.due.max(self.pause_until)
    }

    /// True if what was seen is ground to start a guest.
    pub(super) fn is_fresh(&self, now: Moment) -> bool {
        self.fresh_until.is_some_and(|until| now <= until)
    }

    /// When the one under way is given up; while none is, when the next one is due if one `is_needed`.
    pub(super) fn next(&self, is_needed: bool) -> Option<Moment> {
        if self.reader.is_looking() {
            return self.reader.until();
        }
        is_needed.then_some(self.due())
    }

    /// Begin to look at these.
    pub(super) fn begin(&mut self, needs: BTreeSet<Need>, now: Moment) {
        self.begun = now;
        self.due = now + EVERY;
        self.fresh_until = None;
        self.reader.begin(needs.into_iter(), now);
    }

    /// What the one under way has shown, if it has ended, and what could not be
    /// read or asked since the last call, one line each.
    pub(super) fn end(&mut self, now: Moment) -> (Option<VfStates>, BTreeSet<String>) {
        if self.reader.take_answers(now) {
            self.invalidate();
        }
        let seen = self.reader.seen();
        if seen.is_some() {
            let took = now.since(self.begun);
            self.pause_until = now + (PAUSE_TIMES * took).min(LONGEST_PAUSE);
            // What was heard meanwhile may be later than what was seen: good for now alone, or not
            // at all. Twice in a row nobody is put off, or events without end would put off all.
            let was_heard = self.is_paused();
            self.is_outdated = was_heard && took > LONG && !self.is_outdated;
            let good_for = if was_heard { Duration::ZERO } else { FRESH };
            self.fresh_until = (!self.is_outdated).then_some(now + good_for);
        }
        (seen, std::mem::take(&mut self.reader.problems))
    }

    /// True if these VFs are bound as the last look has found them: an event of udev's comes late
    /// where udev has much to do. What is heard by this is heard.
    pub(super) fn confirm(&mut self, needs: &BTreeSet<Need>) -> bool {
        let is_confirmed = self.reader.are_bound_as_seen(needs);
        if !is_confirmed {
            self.invalidate();
        }
        is_confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::host::Root;
    use crate::names::at;

    #[test]
    fn a_look_is_followed_by_a_pause_and_good_until_something_is_heard() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let root = Root::copy_at(dir.path()).expect("tree");
        let config = Config::default();
        let mut looks = VfPoller::new(VfReader::new(&config, &root));
        assert!(looks.is_due(Moment::START) && !looks.is_fresh(Moment::START));
        let ended = |looks: &mut VfPoller<'_>, now| looks.end(now).0.expect("nobody is asked");
        looks.begin(BTreeSet::new(), at(1_000));
        assert!(looks.reader.is_looking() && !looks.is_fresh(at(1_000)));
        ended(&mut looks, at(1_500));
        assert_eq!(looks.due(), at(1_000) + EVERY);
        assert!(!looks.is_paused() && looks.is_fresh(at(1_500) + FRESH));
        assert!(!looks.is_fresh(at(1_501) + FRESH));
        looks.invalidate();
        assert!(looks.is_paused() && !looks.is_fresh(at(1_500)));
        assert_eq!(looks.due(), at(1_500 + 4 * 500));
        // A short one is good for now if something was heard meanwhile.
        looks.begin(BTreeSet::new(), at(1_000_000));
        looks.invalidate();
        ended(&mut looks, at(1_000_000) + LONGEST_PAUSE);
        let now = at(1_000_000) + LONGEST_PAUSE;
        assert!(looks.is_fresh(now) && !looks.is_fresh(now + Duration::from_micros(1)));
        // In a long one, as of a PF that does not answer, much may have happened.
        looks.begin(BTreeSet::new(), at(2_000_000));
        looks.invalidate();
        assert_eq!(looks.next(true), looks.reader.until(), "nothing else while it lasts");
        ended(&mut looks, at(7_000_000));
        assert_eq!(looks.next(true), Some(at(7_000_000) + LONGEST_PAUSE));
        assert!(!looks.is_fresh(at(7_000_000)), "seen 5 s ago");
        // Where much happens all the time, one is good at last.
        looks.begin(BTreeSet::new(), at(8_000_000));
        looks.invalidate();
        ended(&mut looks, at(13_000_000));
        assert!(looks.is_fresh(at(13_000_000)) && !looks.is_fresh(at(13_000_001)));
        // Nothing was heard.
        looks.begin(BTreeSet::new(), at(14_000_000));
        ended(&mut looks, at(19_000_000));
        assert!(looks.is_fresh(at(19_000_000) + FRESH));
    }
}
