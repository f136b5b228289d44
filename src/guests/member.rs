//! One guest and all that is known of it: how far it is, what its VFs are like,
//! and what follows when a step of its start has ended. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use super::domain::Domains;
use super::failure::Failure;
use super::order::GuestWait;
use super::tasks::Step;
use super::vf::Need;
use super::vf_reader::VfStates;
use crate::config::guest::{Guest, Needs, What};
use crate::model::guests::{GuestKind, GuestReport, Phase, VfState};
use crate::names::{Moment, OnFailure, PciAddress, Ready};

/// One guest of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GuestState {
    guest: Guest,
    phase: Phase,
    /// UUID and name of the domain, once libvirt has told.
    domain: Option<(String, String)>,
    /// The devices it needs, once that is known.
    needs: Option<BTreeSet<Need>>,
    /// How its VFs are, once they were looked at.
    vfs: Option<Vec<VfState>>,
    /// The time that its start may take.
    time: Time,
    /// When its start was first asked for.
    started: Option<Moment>,
    /// When it was seen to be up.
    up_usec: Option<Moment>,
    /// What is wrong with libvirt, which keeps a domain from being looked at.
    libvirt_trouble: Option<String>,
    /// What has gone wrong in its start so far without ending it.
    setback: Option<String>,
}

/// The time that a start may take. It runs while the guest is being started, and
/// while a domain waits for libvirt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Time {
    /// It does not run; so much is left.
    Left(Duration),
    /// It runs until then.
    Until(Moment),
}

/// What follows when a step of a domain's start has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    Do(Step),
    Up,
    /// It has failed, and why.
    Fail(String),
    /// libvirt went away under it: the domain may be up, or not.
    LibvirtGone(Failure),
}

const WITHHELD: &str = "it is not started, because the configuration has an error that concerns it or may concern it: `ibprov config check`";

impl GuestState {
    /// A guest of which nothing is known yet.
    pub(super) fn new(guest: Guest) -> Self {
        let needs = match &guest.vfs {
            Needs::Auto => None,
            Needs::These(vfs) => Some(vfs.iter().map(|vf| Need::Vf(*vf)).collect()),
        };
        let vfs = needs.as_ref().filter(|n: &&BTreeSet<_>| n.is_empty()).map(|_| Vec::new());
        Self {
            time: Time::Left(guest.timeout),
            phase: if guest.is_withheld {
                Phase::Failed { why: WITHHELD.to_owned() }
            } else {
                Phase::Idle
            },
            guest,
            domain: None,
            needs,
            vfs,
            started: None,
            up_usec: None,
            libvirt_trouble: None,
            setback: None,
        }
    }

    /// The guest as it is configured.
    pub(super) const fn guest(&self) -> &Guest {
        &self.guest
    }

    pub(super) const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// It has not been started yet.
    pub(super) fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }

    /// It is a libvirt domain.
    pub(super) const fn is_domain(&self) -> bool {
        matches!(self.guest.what, What::Domain(_))
    }

    /// What it is called where it is started: the domain's UUID, the unit.
    pub(super) fn handle(&self) -> &str {
        match (&self.guest.what, &self.domain) {
            (What::Domain(_), Some((uuid, _))) => uuid,
            (what, _) => what.name(),
        }
    }

    /// The devices it needs, which may be VFs; `None` until that is known.
    pub(super) const fn needs(&self) -> Option<&BTreeSet<Need>> {
        self.needs.as_ref()
    }

    /// It needs devices that may be VFs.
    pub(super) fn has_vfs(&self) -> bool {
        self.needs.as_ref().is_some_and(|needs| !needs.is_empty())
    }

    /// Which devices it needs can be asked, and was not told yet.
    pub(super) const fn lacks_needs(&self) -> bool {
        self.needs.is_none() && self.domain.is_some()
    }

    /// Its VFs were looked at, or it has none.
    pub(super) const fn is_looked_at(&self) -> bool {
        self.vfs.is_some()
    }

    /// All that it needs is known, and right.
    pub(super) fn is_right(&self) -> bool {
        self.libvirt_trouble.is_none()
            && (self.domain.is_some() || !self.is_domain())
            && self.vfs.as_ref().is_some_and(|vfs| vfs.iter().all(VfState::is_right))
    }

    /// What is wrong with libvirt, as long as that keeps it from being looked at.
    pub(super) fn libvirt_trouble(&self) -> Option<&str> {
        self.libvirt_trouble.as_deref()
    }

    /// That it waits for VFs; `None` if all are right, or that is not known.
    pub(super) fn wrong_vfs(&self) -> Option<GuestWait> {
        let wrong = |vf: &VfState| Some(format!("{}: {}", vf.label(), vf.lacks.as_ref()?));
        let wrong: Vec<String> = self.vfs.iter().flatten().filter_map(wrong).collect();
        (!wrong.is_empty()).then_some(GuestWait::Vfs(wrong))
    }

    /// It is not to be tried again, but reported if its VFs are not right.
    pub(super) fn is_tried_once(&self) -> bool {
        self.guest.on_failure == OnFailure::Report
    }

    /// When its start, or its wait for libvirt, is given up; `None` while neither is under way.
    pub(super) const fn until(&self) -> Option<Moment> {
        match self.time {
            Time::Left(_) => None,
            Time::Until(until) => Some(until),
        }
    }

    /// Its time runs; returned is until when.
    fn run_time(&mut self, now: Moment) -> Moment {
        let until = match self.time {
            Time::Left(left) => now + left,
            Time::Until(until) => until,
        };
        self.time = Time::Until(until);
        until
    }

    /// Its time stops. A start that libvirt has broken off goes on with what is left of it: a
    /// domain that takes libvirt down with it would do so for ever. For one that was not
    /// started there is all of it.
    fn stop_time(&mut self, now: Moment) {
        if let Time::Until(until) = self.time {
            let is_broken_off = self.started.is_some();
            let left = if is_broken_off { until.since(now) } else { self.guest.timeout };
            self.time = Time::Left(left);
        }
    }

    fn is_late(&self, now: Moment) -> bool {
        self.until().is_some_and(|until| now >= until)
    }

    /// What is told of it; `waits` is why it is not started yet.
    pub(super) fn report(&self, waits: Option<String>) -> GuestReport {
        GuestReport {
            name: self.guest.what.name().to_owned(),
            kind: if self.is_domain() { GuestKind::Domain } else { GuestKind::Unit },
            uuid: self.domain.as_ref().map(|(uuid, _)| uuid.clone()),
            phase: self.phase.clone(),
            waits,
            vfs: self.vfs.clone(),
            up_usec: self.up_usec,
            origin: self.guest.origin.clone(),
        }
    }

    /// Take in what libvirt says of domains, unless its fate is sealed.
    pub(super) fn learn(&mut self, domains: &Domains, now: Moment) {
        let What::Domain(name) = &self.guest.what else { return };
        self.libvirt_trouble = None;
        if self.phase != Phase::Idle {
            return;
        }
        match domains.find(name) {
            Some((uuid, name)) => {
                self.domain = Some((uuid.to_owned(), name.to_owned()));
                if domains.is_active(name) {
                    // libvirt may have gone away in the middle of our start.
                    self.phase = Phase::Up { already: self.started.is_none() };
                    self.up_usec = Some(now);
                }
            }
            None => {
                let why = "libvirt has no domain of this name or UUID: see `virsh list --all`";
                self.fail(why.to_owned());
            }
        }
        self.stop_time(now);
    }

    /// The PCI functions that the domain is given.
    pub(super) fn record_functions(&mut self, functions: Vec<PciAddress>) {
        if functions.is_empty() {
            self.vfs = Some(Vec::new());
        }
        self.needs = Some(functions.into_iter().map(Need::Function).collect());
    }

    /// Take in a look at VFs, if it was a look at all of its own.
    pub(super) fn see(&mut self, seen: &VfStates) {
        let Some(needs) = &self.needs else { return };
        if needs.iter().all(|need| seen.contains_key(need)) {
            let states = needs.iter().filter_map(|need| seen.get(need).cloned().flatten());
            self.vfs = Some(states.collect());
        }
        // What it waits for now is no part of a start that libvirt has broken off.
        if matches!(self.time, Time::Left(_)) && self.wrong_vfs().is_some() {
            self.time = Time::Left(self.guest.timeout);
        }
    }

    /// libvirt does not answer: a domain that is not up waits for it, for as
    /// long as its start may take.
    pub(super) fn lose_libvirt(&mut self, trouble: &str, now: Moment) {
        if self.is_domain() && self.is_idle() {
            self.libvirt_trouble = Some(trouble.to_owned());
            self.run_time(now);
        }
    }

    /// The trouble that it is given up for: libvirt did not come back in time.
    pub(super) fn gives_up(&self, now: Moment) -> Option<String> {
        if self.is_idle() && self.is_late(now) { self.libvirt_trouble.clone() } else { None }
    }

    /// It was up before anybody started it.
    pub(super) fn found_up(&mut self, now: Moment) {
        self.phase = Phase::Up { already: true };
        self.up_usec = Some(now);
    }

    /// Its start begins; returned is when that is given up.
    pub(super) fn begin(&mut self, now: Moment) -> Moment {
        self.setback = None;
        self.started.get_or_insert(now);
        self.phase = Phase::Starting { since_usec: now };
        self.run_time(now)
    }

    /// It is started and not waited for, and why.
    pub(super) fn issue(&mut self, why: String) {
        self.phase = Phase::Issued { why };
    }

    /// libvirt went away during its start: whether it is up has to be asked anew.
    pub(super) fn break_off(&mut self) {
        self.phase = Phase::Idle;
    }

    /// It is up; returned is how long its start took.
    pub(super) fn come_up(&mut self, now: Moment) -> Duration {
        let since = if let Phase::Starting { since_usec } = self.phase { since_usec } else { now };
        self.phase = Phase::Up { already: false };
        self.up_usec = Some(now);
        now.since(since)
    }

    /// It has failed, and why.
    pub(super) fn fail(&mut self, why: String) {
        self.phase = Phase::Failed { why };
    }

    /// A step of its start has ended with what virsh printed, or failed.
    pub(super) fn step_ended(
        &mut self,
        step: Step,
        result: Result<String, Failure>,
        now: Moment,
    ) -> Next {
        match (step, result) {
            (Step::Check, Err(why)) => Next::LibvirtGone(why),
            // Its time is over, which `go_on` says, with what the agent lacked.
            (Step::AwaitAgent, Err(_)) if self.is_late(now) => self.go_on(Step::Ping, now),
            (_, Err(why @ Failure::LibvirtGone(_))) => Next::LibvirtGone(why),
            // Read back, not believed.
            (Step::Start, Ok(_)) => self.go_on(Step::Check, now),
            (Step::Start, Err(why)) => {
                self.setback = Some(why.to_string());
                self.go_on(Step::Check, now)
            }
            (Step::Check, Ok(active)) => self.checked(&active, now),
            (Step::Ping, Ok(_)) => Next::Up,
            (Step::Ping, Err(why @ Failure::NoAgentChannel(_))) => {
                Next::Fail(format!("the guest runs, but {why}"))
            }
            (Step::Ping, Err(why)) => {
                self.setback = Some(format!("the guest agent does not answer: {why}"));
                self.go_on(Step::AwaitAgent, now)
            }
            // Whatever was heard, the agent is asked. A wait that ends without an
            // event says nothing.
            (Step::AwaitAgent, Ok(_) | Err(Failure::Silent(_))) => self.go_on(Step::Ping, now),
            (Step::AwaitAgent, Err(why)) => {
                Next::Fail(format!("cannot wait for the guest agent: {why}"))
            }
        }
    }

    /// After its start: whether it is among the `active` domains, a name a line.
    fn checked(&mut self, active: &str, now: Moment) -> Next {
        let own = self.domain.as_ref().map(|(_, name)| name.as_str());
        let is_active = active.lines().any(|line| Some(line.trim_end()) == own);
        let agent = self.guest.ready == Ready::Agent;
        match (is_active, self.setback.take()) {
            (true, _) if agent => self.go_on(Step::Ping, now),
            (true, _) => Next::Up,
            (false, Some(why)) => Next::Fail(format!("virsh start: {why}")),
            (false, None) => {
                let why = "libvirt reported a successful start, but the domain has stopped again: see `virsh domstate --reason`";
                Next::Fail(why.to_owned())
            }
        }
    }

    fn go_on(&self, step: Step, now: Moment) -> Next {
        if !self.is_late(now) {
            return Next::Do(step);
        }
        let why = self.setback.as_deref().unwrap_or_default();
        Next::Fail(format!("not up after {} s: {why}", self.guest.timeout.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{TIMEOUT, guest, listed, refusal};
    use super::*;
    use crate::names::at;

    const GONE: &str = "End of file while reading data: Input/output error";

    fn domains(active: &str) -> Domains {
        Domains::parse(&listed("vm", 1).0, active, "")
    }

    /// A domain whose start has begun at 0.
    fn started(ready: Ready) -> GuestState {
        let mut member = GuestState::new(Guest { ready, ..guest("vm") });
        member.learn(&domains(""), Moment::START);
        member.record_functions(Vec::new());
        assert!(member.is_right() && member.handle() == listed("vm", 1).1);
        assert_eq!(member.begin(Moment::START), Moment::START + TIMEOUT);
        member
    }

    fn ok(text: &str) -> Result<String, Failure> {
        Ok(text.to_owned())
    }

    fn fails(words: &str) -> Result<String, Failure> {
        Err(refusal(words))
    }

    fn fail(why: &str) -> Next {
        Next::Fail(why.to_owned())
    }

    #[test]
    fn a_start_is_read_back_and_not_believed() {
        let mut vm = started(Ready::Running);
        assert_eq!(vm.step_ended(Step::Start, ok("started"), at(1)), Next::Do(Step::Check));
        assert_eq!(vm.clone().step_ended(Step::Check, ok("other\nvm \n"), at(2)), Next::Up);
        let Next::Fail(why) = vm.step_ended(Step::Check, ok("other\n"), at(2)) else {
            panic!("up")
        };
        assert!(why.contains("has stopped again"), "{why}");
        assert_eq!(vm.come_up(at(7)), Duration::from_micros(7));
        assert_eq!(vm.report(None).up_usec, Some(at(7)));
    }

    #[test]
    fn a_start_that_virsh_refuses_is_good_if_the_domain_runs_all_the_same() {
        let mut vm = started(Ready::Running);
        let refused = fails("Domain is already active");
        assert_eq!(vm.step_ended(Step::Start, refused, at(1)), Next::Do(Step::Check));
        assert_eq!(vm.clone().step_ended(Step::Check, ok("vm"), at(2)), Next::Up);
        let failed = fail("virsh start: Domain is already active");
        assert_eq!(vm.step_ended(Step::Check, ok(""), at(2)), failed);
    }

    #[test]
    fn with_an_agent_it_is_asked_until_it_answers() {
        let mut vm = started(Ready::Agent);
        assert_eq!(vm.step_ended(Step::Check, ok("vm"), at(1)), Next::Do(Step::Ping));
        let mute = || fails("Guest agent is not responding");
        assert_eq!(vm.step_ended(Step::Ping, mute(), at(2)), Next::Do(Step::AwaitAgent));
        // The wait has ended without an event, which virsh says by its status only.
        let silent = Failure::Silent("virsh event: exit status: 1".to_owned());
        assert_eq!(vm.step_ended(Step::AwaitAgent, Err(silent), at(3)), Next::Do(Step::Ping));
        assert_eq!(vm.step_ended(Step::AwaitAgent, ok("event"), at(3)), Next::Do(Step::Ping));
        assert_eq!(vm.step_ended(Step::Ping, ok("{}"), at(4)), Next::Up);
        assert_eq!(
            vm.step_ended(Step::AwaitAgent, fails("unsupported"), at(3)),
            fail("cannot wait for the guest agent: unsupported")
        );
    }

    #[test]
    fn no_agent_is_waited_for_where_there_can_be_none() {
        let mut vm = started(Ready::Agent);
        let words = "argument unsupported: QEMU guest agent is not configured";
        let failed = fail(&format!("the guest runs, but {words}"));
        assert_eq!(vm.step_ended(Step::Ping, fails(words), at(2)), failed);
    }

    #[test]
    fn at_its_deadline_a_start_is_given_up_with_what_was_wrong_last() {
        let mut vm = started(Ready::Agent);
        let late = Moment::START + TIMEOUT;
        assert_eq!(vm.clone().step_ended(Step::Start, ok(""), late), fail("not up after 5 s: "));
        let failed = fail("not up after 5 s: the guest agent does not answer: mute");
        assert_eq!(vm.clone().step_ended(Step::Ping, fails("mute"), late), failed);
        assert_eq!(vm.step_ended(Step::Ping, fails("mute"), at(1)), Next::Do(Step::AwaitAgent));
        // The wait itself ran into the deadline, or libvirt went away on it.
        let killed = Failure::late("virsh event", Ok(()));
        assert_eq!(vm.clone().step_ended(Step::AwaitAgent, Err(killed), late), failed);
        assert_eq!(vm.step_ended(Step::AwaitAgent, fails(GONE), late), failed);
    }

    #[test]
    fn a_libvirt_that_goes_away_is_no_failure_of_the_guest() {
        for step in [Step::Start, Step::Ping, Step::AwaitAgent] {
            let mut vm = started(Ready::Agent);
            let gone = Next::LibvirtGone(refusal(GONE));
            assert_eq!(vm.step_ended(step, fails(GONE), at(1)), gone, "{step:?}");
        }
        let mut vm = started(Ready::Agent);
        let gone = Next::LibvirtGone(refusal("whatever"));
        assert_eq!(vm.step_ended(Step::Check, fails("whatever"), at(1)), gone);
        // It comes back, and the domain runs: that was our start.
        vm.break_off();
        vm.lose_libvirt(GONE, at(2));
        assert!(!vm.is_right() && vm.is_idle());
        vm.learn(&domains("vm"), at(3));
        assert_eq!(vm.phase(), &Phase::Up { already: false });
    }

    #[test]
    fn what_is_found_running_was_up_already_and_what_is_unknown_fails() {
        let mut vm = GuestState::new(guest("vm"));
        vm.learn(&domains("vm"), at(3));
        assert_eq!(vm.phase(), &Phase::Up { already: true });
        let mut ghost = GuestState::new(guest("ghost"));
        ghost.learn(&domains("vm"), at(3));
        assert!(matches!(ghost.phase(), Phase::Failed { why } if why.contains("no domain")));
    }
    #[test]
    fn a_start_that_libvirt_has_broken_off_goes_on_with_what_is_left_of_its_time() {
        let broken_off = || {
            let mut vm = started(Ready::Running);
            vm.break_off();
            vm.lose_libvirt(GONE, at(1_000_000));
            vm
        };
        // A domain that takes libvirt down with it does so for the time of one start.
        let mut vm = broken_off();
        assert_eq!(vm.gives_up(Moment::START + TIMEOUT), Some(GONE.to_owned()));
        vm.learn(&domains(""), at(2_000_000));
        assert_eq!(vm.begin(at(2_000_000)), Moment::START + TIMEOUT);
        // To wait for another guest, or for a free place, is no part of its start.
        let mut vm = broken_off();
        vm.learn(&domains(""), at(2_000_000));
        assert_eq!(vm.begin(at(90_000_000)), at(90_000_000 - 2_000_000) + TIMEOUT);
        // Its VFs are not right any more: the next start is another one.
        let mut vm = broken_off();
        vm.record_functions(vec![pci()]);
        vm.learn(&domains(""), at(2_000_000));
        vm.see(&VfStates::from([(Need::Function(pci()), Some(VfState::no_function(pci())))]));
        assert_eq!(vm.begin(at(90_000_000)), at(90_000_000) + TIMEOUT);
    }

    fn pci() -> PciAddress {
        "0000:4b:00.1".parse().expect("address")
    }
}
