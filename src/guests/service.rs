//! The loop of `ibprov guests`: it waits for whatever may change something, and
//! lets each part take it in. Nothing here is decided but what is done when.

use std::path::Path;
use std::time::Duration;

use super::failure::Failure;
use super::libvirt::Libvirt;
use super::looks::VfPoller;
use super::member::{GuestState, Next};
use super::members::Members;
use super::tasks::{Done, List, QUESTION, Step, Task, Tasks, Wait};
use super::telling::GuestsReporter;
use super::units::{self, OwnUnit};
use super::vf_reader::VfReader;
use crate::config::Config;
use crate::config::guest::GuestIndex;
use crate::host::events::{Events, Happened};
use crate::host::virsh::Virsh;
use crate::host::{Root, clock, lock, systemd};
use crate::model::{GuestsReport, guests::Phase};
use crate::names::Moment;
use crate::observe::autostart::{self, START_NOBODY, hostdevs};

/// How long nothing at all may happen.
const IDLE: Duration = Duration::from_secs(3600);
const LIBVIRT_DIR: &str = "/run/libvirt";

/// All that works for the guests.
struct Service<'a> {
    /// Only look: nothing is started, and nobody told.
    only_look: bool,
    pass: Pass,
    members: Members,
    libvirt: Libvirt,
    tasks: Tasks,
    poller: VfPoller<'a>,
    telling: GuestsReporter,
}

/// Whether anybody waits for us.
enum Pass {
    /// The start of our unit ends with the first pass.
    First {
        /// When it is over in any case.
        until: Moment,
        /// Our own unit; `None` if no unit's start waits for us.
        own_unit: Option<OwnUnit>,
        /// Since when nobody is being started and nobody can be; `None` while somebody is or can.
        tried: Option<Moment>,
    },
    /// Nobody waits for us any more.
    Later,
}

/// Start the guests, and stay for as long as one of them waits.
///
/// # Errors
/// Nothing could be waited for at all (no poll, no signals).
pub fn run(config: &Config, root: &Root) -> anyhow::Result<GuestsReport> {
    serve(config, root, false).map(|(report, _)| report)
}

/// How the guests are, and who would be started in which order; nothing is
/// started.
///
/// # Errors
/// As [`run`].
pub fn look(config: &Config, root: &Root) -> anyhow::Result<(GuestsReport, Vec<String>)> {
    let (report, members) = serve(config, root, true)?;
    let order = members.order().into_iter().filter_map(|index| members.get(index));
    let order = order.map(|member| member.guest().what.to_string()).collect();
    Ok((report, order))
}

fn serve(config: &Config, root: &Root, only_look: bool) -> anyhow::Result<(GuestsReport, Members)> {
    let started = clock::now();
    let mut report = GuestsReport::new(started);
    let mut watched = vec![Path::new("/run/udev")];
    let locks = lock::Locks::in_run();
    match &locks {
        Ok(locks) => watched.push(locks.dir()),
        Err(e) => {
            report
                .problems
                .insert(format!("{e}: ibprov guests does not notice when an apply ends"));
        }
    }
    let mut events = Events::open(&watched)?;
    events.listen_to_links();
    events.watch_new_files(Path::new(LIBVIRT_DIR));
    report.problems.extend(std::mem::take(&mut events.problems));
    let own_unit = systemd::own_unit(root).unwrap_or_else(|e| {
        report
            .problems
            .insert(format!("{e}: ibprov guests continues as if it did not run in a unit"));
        None
    });
    let own_unit = own_unit.map(OwnUnit::new);
    let telling = GuestsReporter::new(report, only_look);
    let mut service = Service::new(config, root, only_look, own_unit, telling, started);
    service.warn_of_resumed(root);
    service.begin();
    service.serve(&mut events)?;
    Ok((service.telling.into_report(), service.members))
}

impl<'a> Service<'a> {
    fn new(
        config: &'a Config,
        root: &'a Root,
        only_look: bool,
        own_unit: Option<OwnUnit>,
        telling: GuestsReporter,
        now: Moment,
    ) -> Self {
        let connection = config.guests.connection.as_str();
        let until = now + config.guests.timeout;
        Self {
            only_look,
            pass: Pass::First { until, own_unit, tried: None },
            members: Members::new(&config.guests),
            libvirt: Libvirt::new(connection.to_owned()),
            tasks: Tasks::new(Virsh::find(connection)),
            poller: VfPoller::new(VfReader::new(config, root)),
            telling,
        }
    }

    /// Domains of ours that libvirt-guests.service starts, whatever their VFs are like.
    fn warn_of_resumed(&mut self, root: &Root) {
        let resumed = autostart::resumed(root);
        for domain in resumed.domains {
            if !self.members.any(|m| m.is_domain() && m.guest().what.name() == domain.name) {
                continue;
            }
            let warning = format!(
                "domain {} ran at shutdown, and libvirt-guests.service starts it again at boot, without regard to its VFs: write {START_NOBODY} to {}, or disable libvirt-guests.service",
                domain.name, resumed.file
            );
            if self.only_look { self.telling.note(warning) } else { self.telling.warn(warning) }
        }
    }

    /// What can be asked before anything is known.
    fn begin(&mut self) {
        if self.members.any(GuestState::is_domain) {
            if self.tasks.virsh.is_some() {
                self.ask_libvirt(clock::now());
            } else {
                let why =
                    "libvirt's virsh is not installed (package libvirt-clients or libvirt-client)";
                for (_, member) in self.members.iter_mut().filter(|(_, m)| m.is_domain()) {
                    member.fail(why.to_owned());
                }
            }
        }
        self.look_at_units();
    }

    fn serve(&mut self, events: &mut Events) -> anyhow::Result<()> {
        loop {
            let now = clock::now();
            if self.turn(now) {
                return Ok(());
            }
            let until = self.wait_until(now);
            let answers = self.poller.reader.answers_come().chain(self.tasks.answers_come());
            let happened = events.wait_also(until, answers.collect())?;
            if happened.stop {
                self.telling.finish(&self.members);
                return Ok(());
            }
            self.hear(&happened);
        }
    }

    /// Take in what has come, and do what can be done now. True if nothing is left to be done.
    fn turn(&mut self, now: Moment) -> bool {
        for done in self.tasks.collect(now) {
            self.take(done, now);
        }
        self.ask_next(now);
        self.see(now);
        for (index, why) in self.members.given_up(now) {
            self.fail(index, why);
        }
        if self.only_look {
            if self.is_looked_at() || self.first_pass_until().is_some_and(|at| now >= at) {
                self.telling.update(&self.members);
                return true;
            }
        } else {
            self.start(now);
        }
        self.look(now);
        if self.libvirt.ask_at().is_some_and(|at| now >= at) {
            self.ask_libvirt(now);
        }
        if !self.only_look {
            let is_late = self.first_pass_until().is_some_and(|at| now >= at);
            if is_late || self.is_tried(now) {
                self.end_first_pass(now);
            }
            self.await_issued(now);
            if self.first_pass_until().is_none() {
                self.telling.say_who_waits(&self.members);
            }
            self.telling.update_in_time(&self.members);
        }
        let is_over = self.first_pass_until().is_none() && self.members.are_over();
        if is_over && self.tasks.is_idle() {
            self.telling.finish(&self.members);
            return true;
        }
        false
    }

    /// When the loop goes on although nothing has happened.
    fn wait_until(&self, now: Moment) -> Moment {
        if self.can_go_on(now) {
            return now;
        }
        // With nothing to look at there are only events.
        let until = self.first_pass_until().unwrap_or(now + IDLE);
        let next = [
            self.tasks.next_deadline(),
            self.poller.next(self.has_vfs_to_watch()),
            self.libvirt.ask_at(),
            self.members.next_until(),
            self.telling.due(),
        ];
        next.into_iter().flatten().fold(until, Moment::min)
    }

    /// Somebody has failed in this turn for whom others waited, after it was looked who can be
    /// started.
    fn can_go_on(&self, now: Moment) -> bool {
        let is_fresh = self.poller.is_fresh(now);
        let can_look = !is_fresh && !self.poller.reader.is_looking() && !self.poller.is_paused();
        let can_start = || !self.startable(now).is_empty();
        !self.only_look && (can_start() || can_look && self.members.can_start_any())
    }

    fn hear(&mut self, happened: &Happened) {
        if happened.links || happened.files || happened.to_devices() {
            self.poller.invalidate();
        }
        if happened.files {
            self.libvirt.hear();
        }
    }

    /// When the first pass is over in any case; `None` if it is over.
    const fn first_pass_until(&self) -> Option<Moment> {
        match &self.pass {
            Pass::First { until, .. } => Some(*until),
            Pass::Later => None,
        }
    }

    /// The first pass has nothing more to wait for. What was heard until nobody could be started
    /// any more is looked at; on a host where something happens all the time, more is heard then.
    fn is_tried(&mut self, now: Moment) -> bool {
        let is_watching = self.has_vfs_to_watch();
        let Pass::First { tried, .. } = &mut self.pass else { return false };
        if !self.members.are_tried() || !self.tasks.is_idle() {
            *tried = None;
            return false;
        }
        let since = *tried.get_or_insert(now);
        let will_look = is_watching && self.poller.is_behind(since);
        !self.poller.reader.is_looking() && !will_look
    }

    /// All is known that can be known without starting anybody.
    fn is_looked_at(&self) -> bool {
        self.members.are_looked_at() && self.tasks.is_idle() && !self.poller.reader.is_looking()
    }

    fn end_first_pass(&mut self, now: Moment) {
        for index in self.members.which(|m| m.is_idle() && m.is_tried_once()) {
            if let Some(wrong) = self.members.get(index).and_then(GuestState::wrong_vfs) {
                self.fail(index, wrong.to_string());
            }
        }
        self.telling.ready(&self.members, now);
        // From here on nobody waits for us, so everybody can be waited for (await_issued).
        self.pass = Pass::Later;
        for (name, uuid) in self.libvirt.autostarted() {
            self.tasks.queue(Task::Autostarted(name), &uuid);
        }
        self.ask_next(now);
    }

    // What is seen of VFs.

    /// True for who is not started yet; who only looks, looks at all.
    fn is_watched(only_look: bool) -> impl Fn(&GuestState) -> bool {
        move |member| only_look || member.is_idle()
    }

    fn has_vfs_to_watch(&self) -> bool {
        let is_watched = Self::is_watched(self.only_look);
        self.members.any(|m| is_watched(m) && m.has_vfs())
    }

    /// Take in what a look at the VFs has shown, if one has ended.
    fn see(&mut self, now: Moment) {
        let (seen, problems) = self.poller.end(now);
        self.telling.note_all(problems);
        if let Some(seen) = seen {
            self.members.see(&seen, Self::is_watched(self.only_look));
        }
    }

    /// Look at the VFs of those that are not started yet, if it is time to.
    fn look(&mut self, now: Moment) {
        if self.poller.reader.is_looking() || !self.has_vfs_to_watch() {
            return;
        }
        // What was seen a while ago is no ground to start anybody.
        if !self.only_look && !self.poller.is_fresh(now) && self.members.can_start_any() {
            self.poller.invalidate();
        }
        if self.poller.is_due(now) {
            let needs = self.members.needs(Self::is_watched(self.only_look));
            self.poller.begin(needs, now);
        }
    }

    // What libvirt and systemd are asked, and say.

    /// Ask which domains there are and how they are.
    fn ask_libvirt(&mut self, now: Moment) {
        self.libvirt.begin();
        for list in List::EACH {
            self.begin_task(Task::List(list), now + QUESTION, now);
        }
    }

    fn listed(&mut self, list: List, result: Result<String, Failure>, now: Moment) {
        match self.libvirt.listed(list, result) {
            None => {}
            Some(Ok(domains)) => {
                self.members.learn(domains, now);
                self.ask_for_devices();
            }
            Some(Err(trouble)) => self.lose_libvirt(&trouble, now),
        }
    }

    /// Ask what is queued, as far as its turn has come.
    fn ask_next(&mut self, now: Moment) {
        for done in self.tasks.ask_next(now) {
            self.take(done, now);
        }
    }

    /// The devices of domains whose VFs are not listed.
    fn ask_for_devices(&mut self) {
        let is_watched = Self::is_watched(self.only_look);
        for index in self.members.which(|m| m.lacks_needs() && is_watched(m)) {
            let task = Task::Xml(index);
            if !self.tasks.any(|t| *t == task) {
                let handle = self.members.get(index).map(GuestState::handle).unwrap_or_default();
                self.tasks.queue(task, handle);
            }
        }
    }

    fn take_devices(&mut self, index: GuestIndex, result: Result<String, Failure>, now: Moment) {
        match result.map(|xml| hostdevs(&xml)) {
            Ok(Ok(functions)) => {
                if let Some(member) = self.members.get_mut(index) {
                    member.record_functions(functions);
                    self.poller.invalidate();
                }
            }
            Ok(Err(why)) => self.fail(index, format!("the domain's XML cannot be parsed: {why}")),
            Err(why @ Failure::LibvirtGone(_)) => self.lose_libvirt(&why.to_string(), now),
            Err(why) => self.fail(index, format!("the domain's XML cannot be read: {why}")),
        }
    }

    /// A domain that libvirt starts by itself, whatever its VFs are like.
    fn take_autostarted(&mut self, name: &str, result: Result<String, Failure>) {
        let functions = match result.map_err(|e| e.to_string()).and_then(|xml| hostdevs(&xml)) {
            Ok(functions) => functions,
            Err(e) => return self.telling.note(format!("XML of domain {name}: {e}")),
        };
        let vfs = functions.into_iter().filter(|pci| self.poller.reader.is_hca_vf(*pci));
        let vfs: Vec<String> = vfs.map(|pci| pci.to_string()).collect();
        if vfs.is_empty() {
            return;
        }
        self.telling.warn(format!(
            "domain {name} has autostart on and VF {}: libvirt starts the domain without regard to that VF. Run `virsh autostart --disable` and list the domain as [[guest]], or install the example libvirt-qemu-hook of ibprov",
            vfs.join(", ")
        ));
    }

    /// Guests that are not up wait for libvirt, each for as long as its start
    /// may take.
    fn lose_libvirt(&mut self, trouble: &str, now: Moment) {
        self.libvirt.ask_later(now);
        self.members.lose_libvirt(trouble, now);
    }

    fn look_at_units(&mut self) {
        let indices = self.members.which(|m| !m.is_domain());
        if indices.is_empty() {
            return;
        }
        let members = indices.iter().filter_map(|index| self.members.get(*index));
        let names: Vec<&str> = members.map(|m| m.guest().what.name()).collect();
        let states = match units::states(&names) {
            Ok(states) => states,
            // Their start will say it again, each for itself.
            Err(e) => return self.telling.note(format!("cannot query systemd: {e}")),
        };
        for (index, unit) in indices.into_iter().zip(states) {
            let Some(member) = self.members.get_mut(index) else { continue };
            if unit.is_active() {
                member.found_up(clock::now());
            } else if !unit.is_loaded() {
                let load = unit.load;
                member.fail(format!("systemd has no such unit to start ({load})"));
            }
        }
    }

    // Who is started, and what becomes of it.

    /// Who can be started now.
    fn startable(&self, now: Moment) -> Vec<GuestIndex> {
        // Each takes a connection to the bus until systemd has taken its job.
        let issuing = self.tasks.count(|task| matches!(task, Task::Unit(_, Wait::No)));
        self.members.startable(self.poller.is_fresh(now), issuing)
    }

    /// Start who may go. Who needs VFs goes only if they were looked at just now, and have not
    /// lost or changed their drivers since.
    fn start(&mut self, now: Moment) {
        for index in self.startable(now) {
            let needs = self.members.get(index).and_then(GuestState::needs);
            if needs.is_some_and(|needs| !self.poller.confirm(needs)) {
                return;
            }
            let waits = self.waits_for_us(index);
            let Some(member) = self.members.get_mut(index) else { continue };
            let until = member.begin(now);
            self.telling.starting(index, &member.guest().what);
            let task = if member.is_domain() {
                Task::Domain(index, Step::Start)
            } else {
                match waits {
                    None => Task::Unit(index, Wait::ForEnd),
                    Some(why) => {
                        self.telling.issued(&member.guest().what, &why);
                        member.issue(why);
                        Task::Unit(index, Wait::No)
                    }
                }
            };
            self.begin_task(task, until, now);
        }
    }

    /// Why the start of a guest cannot end before ours has.
    fn waits_for_us(&self, index: GuestIndex) -> Option<String> {
        let Pass::First { own_unit: Some(own), .. } = &self.pass else { return None };
        let units = self.members.iter().filter(|(_, m)| !m.is_domain());
        let units: Vec<&str> = units.map(|(_, m)| m.guest().what.name()).collect();
        own.deadlock(&self.members.get(index)?.guest().what, &units)
    }

    /// See those to their ends whose starts could not be waited for, a few at a time: each
    /// takes a connection to the bus.
    fn await_issued(&mut self, now: Moment) {
        if self.first_pass_until().is_some() {
            return;
        }
        let awaited = |task: &Task, index| *task == Task::Unit(index, Wait::ForEnd);
        let is_issued = |m: &GuestState| matches!(m.phase(), Phase::Issued { .. });
        let issued = self.members.which(is_issued);
        let (awaited, open): (Vec<_>, Vec<_>) =
            issued.into_iter().partition(|index| self.tasks.any(|task| awaited(task, *index)));
        let free = self.members.max_parallel().saturating_sub(awaited.len());
        for index in open.into_iter().take(free) {
            let until = self.members.get(index).and_then(GuestState::until).unwrap_or(now);
            // Whose turn comes late may be up long since.
            self.begin_task(Task::Unit(index, Wait::ForEnd), until.max(now + QUESTION), now);
        }
    }

    /// Begin what is on no guest, or on that of the task; if it cannot be begun,
    /// it has ended.
    fn begin_task(&mut self, task: Task, until: Moment, now: Moment) {
        let member = task.guest().and_then(|index| self.members.get(index));
        let handle = member.map(GuestState::handle).unwrap_or_default();
        if let Err(e) = self.tasks.begin(task.clone(), handle, until) {
            self.take(Done { task, result: Err(e) }, now);
        }
    }

    fn take(&mut self, Done { task, result }: Done, now: Moment) {
        match task {
            Task::List(list) => self.listed(list, result, now),
            Task::Xml(index) => self.take_devices(index, result, now),
            Task::Domain(index, step) => {
                let Some(member) = self.members.get_mut(index) else { return };
                let next = member.step_ended(step, result, now);
                self.follow(index, next, now);
            }
            Task::Unit(index, wait) => match (result, wait) {
                (Ok(_), Wait::ForEnd) => self.up(index, now),
                (Ok(_), Wait::No) => {}
                (Err(why), _) => self.fail(index, why.to_string()),
            },
            Task::Autostarted(name) => self.take_autostarted(&name, result),
        }
    }

    /// The next thing to do for a domain that is being started.
    fn follow(&mut self, index: GuestIndex, next: Next, now: Moment) {
        let Some(member) = self.members.get_mut(index) else { return };
        match next {
            Next::Do(step) => {
                let until = member.until().unwrap_or(now);
                let task = Task::Domain(index, step);
                if let Err(e) = self.tasks.begin(task, member.handle(), until) {
                    self.fail(index, e.to_string());
                }
            }
            Next::Up => self.up(index, now),
            Next::Fail(why) => self.fail(index, why),
            Next::LibvirtGone(why) => {
                member.break_off();
                self.lose_libvirt(&format!("libvirt has stopped: {why}"), now);
                self.libvirt.ask_at_once(now);
            }
        }
    }

    fn up(&mut self, index: GuestIndex, now: Moment) {
        let Some(member) = self.members.get_mut(index) else { return };
        let took = member.come_up(now);
        self.telling.up(index, &member.guest().what, took);
    }

    fn fail(&mut self, index: GuestIndex, why: String) {
        let Some(member) = self.members.get_mut(index) else { return };
        self.telling.failed(index, &member.guest().what, &why);
        member.fail(why);
    }
}

#[cfg(test)]
mod tests;
