//! What is told of the guests: the report, systemd's status line, the journal.
//! Nothing is told twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tracing::span::EnteredSpan;
use tracing::{Level, error, error_span, info, warn};

use super::members::Members;
use super::order::GuestWait;
use crate::config::guest::{GuestIndex, What};
use crate::host::{clock, journal, state, systemd};
use crate::model::{GuestsReport, events as kinds};
use crate::names::{Moment, usec};

/// After the report was brought up to date comes a pause that is so many times as long as that
/// took: it is of all guests, and while hundreds of them start it changes with each.
const PAUSE_TIMES: u32 = 4;
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Who tells, and what was told last.
#[derive(Debug)]
pub(super) struct GuestsReporter {
    /// Nothing leaves this process; the report is for who asked for it.
    is_silent: bool,
    report: GuestsReport,
    said: LastWaits,
    /// The report as it was written last.
    written: String,
    /// When the pause after that is over.
    pause_until: Moment,
    /// It is to be brought up to date after the pause.
    is_put_off: bool,
}

/// Why each guest waits, as the journal has it.
#[derive(Debug, Default)]
struct LastWaits(BTreeMap<GuestIndex, GuestWait>);

impl LastWaits {
    /// True if this was not what was said last; now it is.
    fn is_news(&mut self, guest: GuestIndex, waiting: &GuestWait) -> bool {
        self.0.insert(guest, waiting.clone()).as_ref() != Some(waiting)
    }

    /// It waits no longer: if it does so again, that is news.
    fn forget(&mut self, guest: GuestIndex) {
        self.0.remove(&guest);
    }
}

impl GuestsReporter {
    /// To everybody, or only into the report.
    pub(super) fn new(report: GuestsReport, is_silent: bool) -> Self {
        Self {
            is_silent,
            report,
            said: LastWaits::default(),
            written: String::new(),
            pause_until: Moment::START,
            is_put_off: false,
        }
    }

    /// The report as it is now.
    pub(super) fn into_report(self) -> GuestsReport {
        self.report
    }

    /// A line for the report's problems.
    pub(super) fn note(&mut self, problem: String) {
        self.report.problems.insert(problem);
    }

    /// Lines for the report's problems.
    pub(super) fn note_all(&mut self, mut problems: BTreeSet<String>) {
        self.report.problems.append(&mut problems);
    }

    /// A warning about the host, no matter for whom.
    pub(super) fn warn(&mut self, text: String) {
        warn!(message_id = kinds::WARNING, warning = text, "{text}");
        self.report.problems.insert(text);
    }

    pub(super) fn starting(&mut self, index: GuestIndex, guest: &What) {
        self.said.forget(index);
        if let Some(_told) = self.about(guest) {
            info!(message_id = kinds::GUEST_STARTING, "{guest} is being started");
        }
    }

    /// A guest is started and not waited for.
    pub(super) fn issued(&self, guest: &What, why: &str) {
        if let Some(_told) = self.about(guest) {
            warn!(
                message_id = kinds::WARNING,
                "{guest} was started, and ibprov does not wait until it is up: {why}"
            );
        }
    }

    /// A guest is up, after so long.
    pub(super) fn up(&mut self, index: GuestIndex, guest: &What, took: Duration) {
        self.said.forget(index);
        if let Some(_told) = self.about(guest) {
            info!(message_id = kinds::GUEST_UP, took_usec = usec(took), "{guest} is up");
        }
    }

    pub(super) fn failed(&mut self, index: GuestIndex, guest: &What, why: &str) {
        self.said.forget(index);
        if let Some(_told) = self.about(guest) {
            error!(message_id = kinds::GUEST_FAILED, cause = why, "{guest} is not up: {why}");
        }
    }

    /// The first pass is over.
    pub(super) fn ready(&mut self, members: &Members, now: Moment) {
        self.report.ready_usec = Some(now);
        // Who waits for us may read it.
        self.update(members);
        let level = if members.all(|m| m.phase().is_settled()) { Level::INFO } else { Level::WARN };
        let line = self.headline(members);
        journal::event!(level, message_id = kinds::GUESTS_READY, "first pass: {line}");
        systemd::tell_ready(&line);
    }

    /// Say of each guest why it waits, unless that was said.
    pub(super) fn say_who_waits(&mut self, members: &Members) {
        for (index, member) in members.iter() {
            let Some(waiting) = self.waiting(members, index) else { continue };
            if self.said.is_news(index, &waiting) {
                let guest = &member.guest().what;
                if let Some(_told) = self.about(guest) {
                    warn!(
                        message_id = kinds::GUEST_WAITS,
                        cause = %waiting,
                        "{guest} waits: {waiting}"
                    );
                }
            }
        }
    }

    /// Bring the report and the status line up to date, at once or after the pause.
    pub(super) fn update_in_time(&mut self, members: &Members) {
        let begin = clock::now();
        self.is_put_off = begin < self.pause_until;
        if !self.is_put_off {
            self.update(members);
            let end = clock::now();
            let pause = PAUSE_TIMES * end.since(begin);
            self.pause_until = end + pause.min(LONGEST_PAUSE);
        }
    }

    /// When that is to be done which was put off, if anything was.
    pub(super) fn due(&self) -> Option<Moment> {
        self.is_put_off.then_some(self.pause_until)
    }

    /// Bring the report and the status line up to date.
    pub(super) fn update(&mut self, members: &Members) {
        let Some(json) = self.news(members) else { return };
        self.write(&json);
        systemd::tell_status(&self.headline(members));
    }

    pub(super) fn finish(&mut self, members: &Members) {
        self.update(members);
        self.report.finish(clock::now());
        if let Some(json) = self.news(members) {
            self.write(&json);
        }
    }

    /// The report brought up to date, as JSON, if that is to be written.
    fn news(&mut self, members: &Members) -> Option<String> {
        self.report.guests = (members.iter())
            .map(|(index, m)| m.report(self.waiting(members, index).map(|w| w.to_string())))
            .collect();
        if self.is_silent {
            return None;
        }
        let json = self.report.to_report().to_json().unwrap_or_default();
        if json == self.written {
            return None;
        }
        self.written.clone_from(&json);
        Some(json)
    }

    fn write(&mut self, json: &str) {
        if let Err(e) = state::write("guests.json", json) {
            self.note(format!("cannot write {e}"));
        }
    }

    /// Who only looks starts nobody, so nobody waits for a slot.
    fn waiting(&self, members: &Members, index: GuestIndex) -> Option<GuestWait> {
        members.waiting(index).filter(|w| !(self.is_silent && *w == GuestWait::Slot))
    }

    fn headline(&self, members: &Members) -> String {
        let (up, all) = members.count_up();
        let first = members.iter().find_map(|(index, m)| Some((m, self.waiting(members, index)?)));
        match first {
            Some((member, waiting)) => {
                format!("{up} of {all} guests up; {} waits: {waiting}", member.guest().what)
            }
            None => format!("{up} of {all} guests up"),
        }
    }

    /// What is said while this lives is about `guest`; none if nothing is to be said.
    fn about(&self, guest: &What) -> Option<EnteredSpan> {
        (!self.is_silent).then(|| error_span!("guest", guest = guest.name()).entered())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{after, guest, guests};
    use super::*;
    use crate::model::guests::Phase;
    use crate::names::at;

    fn members() -> Members {
        Members::new(&guests(vec![guest("a.service"), after("b.service", &[0])], 1))
    }

    #[test]
    fn why_a_guest_waits_is_said_once_until_it_changes_or_it_waits_anew() {
        let mut said = LastWaits::default();
        let (one, other) = (GuestIndex::new(0), GuestIndex::new(1));
        assert!(said.is_news(one, &GuestWait::Look));
        assert!(!said.is_news(one, &GuestWait::Look));
        assert!(said.is_news(other, &GuestWait::Look));
        assert!(said.is_news(one, &GuestWait::Slot));
        assert!(!said.is_news(one, &GuestWait::Slot));
        assert!(said.is_news(one, &GuestWait::Look));
        said.forget(one);
        assert!(said.is_news(one, &GuestWait::Look));
        assert!(!said.is_news(other, &GuestWait::Look));
    }

    #[test]
    fn the_report_is_written_when_it_has_changed() {
        let mut members = members();
        let mut telling = GuestsReporter::new(GuestsReport::new(Moment::START), false);
        let json = telling.news(&members).expect("the first");
        assert!(json.contains("\"waits\": \"other guests are being started\""), "{json}");
        assert!(json.contains("\"waits\": \"the guest starts after unit a.service"), "{json}");
        assert_eq!(telling.news(&members), None);
        members.get_mut(GuestIndex::new(0)).expect("guest").begin(at(1));
        assert!(telling.news(&members).is_some());
        assert_eq!(telling.news(&members), None);
        telling.note("a problem".to_owned());
        assert!(telling.news(&members).is_some());
    }

    #[test]
    fn what_is_put_off_is_due_when_the_pause_is_over() {
        let mut members = members();
        let mut telling = GuestsReporter::new(GuestsReport::new(Moment::START), true);
        assert_eq!(telling.due(), None);
        telling.pause_until = Moment::NEVER;
        telling.update_in_time(&members);
        assert!(telling.report.guests.is_empty());
        assert_eq!(telling.due(), Some(Moment::NEVER));
        telling.pause_until = Moment::START;
        telling.update_in_time(&members);
        assert_eq!((telling.report.guests.len(), telling.due()), (2, None));
        assert!(telling.pause_until <= clock::now() + LONGEST_PAUSE);
        // Who waits for the first pass does not wait for the pause.
        telling.pause_until = Moment::NEVER;
        members.get_mut(GuestIndex::new(0)).expect("guest").begin(at(1));
        telling.update(&members);
        assert!(matches!(telling.report.guests[0].phase, Phase::Starting { .. }));
    }

    /// Also if a signal ends it: what the service has written is its own.
    #[test]
    fn who_only_looks_writes_nothing() {
        let members = members();
        let mut telling = GuestsReporter::new(GuestsReport::new(Moment::START), true);
        assert_eq!(telling.news(&members), None);
        let report = telling.into_report();
        let waits: Vec<bool> = report.guests.iter().map(|g| g.waits.is_some()).collect();
        // Nobody is started by who looks, so nobody waits for others to be.
        assert_eq!(waits, [false, true]);
    }

    #[test]
    fn the_status_line_counts_and_says_who_waits_first() {
        let mut members = members();
        let telling = GuestsReporter::new(GuestsReport::new(Moment::START), false);
        members.get_mut(GuestIndex::new(0)).expect("guest").begin(at(1));
        assert_eq!(
            telling.headline(&members),
            "0 of 2 guests up; unit b.service waits: the guest starts after unit a.service, which is not up yet"
        );
        for position in 0..2 {
            members.get_mut(GuestIndex::new(position)).expect("guest").come_up(at(2));
        }
        assert_eq!(telling.headline(&members), "2 of 2 guests up");
    }
}
