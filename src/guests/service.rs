//! The loop of `ibprov guests`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use log::Level;

use super::deadlock::waits_for_us;
use super::domain::{Domains, hostdevs, lost_libvirt};
use super::member::Member;
use super::order::{Phase, Standing, first_before, startable};
use super::sight::Sight;
use super::tasks::{Done, QUESTION_USEC, Task, Tasks};
use super::vf::Need;
use crate::check::graph::{Graph, show};
use crate::config::Config;
use crate::config::guest::{OnFailure, Ready, What};
use crate::host::events::{Events, Happened};
use crate::host::manager::Manager;
use crate::host::virsh::Virsh;
use crate::host::{Root, clock, journal, lock, process, state, systemd};
use crate::report::events as kinds;
use crate::report::guests::GuestsReport;

/// How often VFs are looked at while a guest waits for one, although nothing
/// was heard: a GUID written by hand to MLNX_OFED's sysfs makes no event.
const LOOK_EVERY_USEC: u64 = 5_000_000;
/// How often libvirt is asked again while it does not answer, although its
/// directory shows no new socket.
const LIBVIRT_EVERY_USEC: u64 = 5_000_000;
/// How long nothing at all may happen.
const IDLE_USEC: u64 = 3_600_000_000;
const LIBVIRT_DIR: &str = "/run/libvirt";

/// All guests.
struct Service<'a> {
    /// Only look: nothing is started, and nobody told.
    only_look: bool,
    config: &'a Config,
    members: Vec<Member>,
    tasks: Tasks,
    sight: Sight<'a>,
    /// What of libvirt's answers has come.
    lists: [Option<Result<String, String>>; 3],
    domains: Option<Domains>,
    /// When libvirt is asked again.
    list_at: Option<u64>,
    /// When VFs are looked at again.
    look_at: u64,
    /// Our own unit, while its start has not ended.
    own_unit: Option<String>,
    is_first_pass: bool,
    /// What was said last of each guest that waits.
    told: BTreeMap<usize, String>,
    written: String,
    report: GuestsReport,
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
    let (report, mut standings) = serve(config, root, true)?;
    let mut order = Vec::new();
    while let Some(next) = startable(&standings, 1).first().copied() {
        let Some(standing) = standings.get_mut(next) else { break };
        standing.phase = Phase::Up { already: false };
        order.extend(config.guests.list.get(next).map(|guest| guest.what.to_string()));
    }
    Ok((report, order))
}

fn serve(
    config: &Config,
    root: &Root,
    only_look: bool,
) -> anyhow::Result<(GuestsReport, Vec<Standing>)> {
    let started = clock::monotonic_usec();
    let mut report = GuestsReport::new(started);
    let locks = lock::Locks::in_run()
        .map_err(|e| report.problems.insert(format!("{e}: the end of an apply is not heard")))
        .ok();
    let mut watched = vec![Path::new("/run/udev")];
    watched.extend(locks.as_ref().map(lock::Locks::dir));
    let mut events = Events::open(&watched)?;
    events.listen_to_links();
    events.watch_new_files(Path::new(LIBVIRT_DIR));
    report.problems.extend(std::mem::take(&mut events.problems));
    let members: Vec<Member> = config.guests.list.iter().cloned().map(Member::new).collect();
    let mut service = Service {
        only_look,
        config,
        members,
        tasks: Tasks::new(Virsh::find(config.guests.connection.as_str())),
        sight: Sight::new(config, root),
        lists: [None, None, None],
        domains: None,
        list_at: None,
        look_at: 0,
        own_unit: own_unit(root),
        is_first_pass: true,
        told: BTreeMap::new(),
        written: String::new(),
        report,
    };
    service.begin();
    let until = started + u64::try_from(config.guests.deadline.as_micros()).unwrap_or(u64::MAX / 4);
    service.serve(&mut events, until)?;
    let standings = service.standings();
    Ok((service.report, standings))
}

/// The service that this process is the main part of, by its control group.
fn own_unit(root: &Root) -> Option<String> {
    let groups = root.text("/proc/self/cgroup", 1 << 16).ok()?;
    let path = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        matches!(controllers, "" | "name=systemd").then_some(path)
    })?;
    let unit = path.rsplit('/').next()?;
    unit.ends_with(".service").then(|| unit.to_owned())
}

impl Service<'_> {
    /// What can be asked before anything is known.
    fn begin(&mut self) {
        if self.members.iter().any(Member::is_domain) {
            if self.tasks.has_virsh() {
                self.ask_libvirt();
            } else {
                let why =
                    "libvirt's virsh is not installed (package libvirt-clients or libvirt-client)";
                for member in self.members.iter_mut().filter(|m| m.is_domain()) {
                    member.phase = Phase::Failed { why: why.to_owned() };
                }
            }
        }
        self.look_at_units();
    }

    fn serve(&mut self, events: &mut Events, first_pass_until: u64) -> anyhow::Result<()> {
        loop {
            let now = clock::monotonic_usec();
            for done in self.tasks.collect(now) {
                self.take(done, now);
            }
            let is_fresh = self.see();
            self.give_up(now);
            if self.only_look {
                if self.is_looked_at() || now >= first_pass_until {
                    let whys: Vec<_> = (0..self.members.len()).map(|i| self.why(i)).collect();
                    self.report.fill(&self.members, &whys);
                    return Ok(());
                }
            } else {
                self.start(now, is_fresh);
            }
            self.look(now);
            if self.list_at.is_some_and(|at| now >= at) {
                self.ask_libvirt();
            }
            if !self.only_look
                && self.is_first_pass
                && (now >= first_pass_until || self.first_pass_is_over())
            {
                self.end_first_pass(now);
            }
            if !self.only_look {
                self.tell();
            }
            if !self.is_first_pass && self.is_over() {
                self.finish();
                return Ok(());
            }
            for done in self.tasks.ask_next(now) {
                self.take(done, now);
            }
            // With nothing to look at there are only events.
            let until = if self.is_first_pass { first_pass_until } else { now + IDLE_USEC };
            let next = [
                self.tasks.next_deadline(),
                self.sight.until_usec(),
                self.list_at,
                self.has_vfs_to_watch().then_some(self.look_at),
                self.members
                    .iter()
                    .filter(|m| m.phase == Phase::Idle)
                    .filter_map(|m| m.until_usec)
                    .min(),
            ];
            let until = next.into_iter().flatten().fold(until, u64::min);
            let happened =
                events.wait_also(until, self.sight.answers_come().into_iter().collect())?;
            if happened.stop {
                self.finish();
                return Ok(());
            }
            self.hear(&happened);
        }
    }

    fn hear(&mut self, happened: &Happened) {
        if happened.links || happened.files || !happened.udev.is_empty() {
            self.look_at = 0;
        }
        if happened.files && self.list_at.is_some() {
            self.list_at = Some(0);
        }
    }

    /// Ask which domains there are and how they are, unless that is under way.
    fn ask_libvirt(&mut self) {
        let lists = |t: &Task| matches!(t, Task::ListAll | Task::ListActive | Task::ListAutostart);
        if self.tasks.any(lists) {
            return;
        }
        self.list_at = None;
        self.lists = [None, None, None];
        let until = clock::monotonic_usec() + QUESTION_USEC;
        for task in [Task::ListAll, Task::ListActive, Task::ListAutostart] {
            if let Err(e) = self.tasks.begin(task.clone(), "", until) {
                self.take(Done { task, result: Err(e) }, clock::monotonic_usec());
            }
        }
    }

    fn listed(&mut self, which: usize, result: Result<String, String>, now: u64) {
        if let Some(slot) = self.lists.get_mut(which) {
            *slot = Some(result);
        }
        let [Some(all), Some(active), Some(autostart)] = &self.lists else { return };
        match (all, active, autostart) {
            (Ok(all), Ok(active), Ok(autostart)) => {
                let domains = Domains::parse(all, active, autostart);
                for member in &mut self.members {
                    member.learn(&domains, now);
                }
                self.domains = Some(domains);
                self.read_xml();
            }
            (Err(why), ..) | (_, Err(why), _) | (.., Err(why)) => {
                let why = format!("libvirt ({}) does not answer: {why}", self.connection());
                self.lose_libvirt(&why, now);
            }
        }
    }

    /// Guests that are not up wait for libvirt, each for as long as its start
    /// may take.
    fn lose_libvirt(&mut self, why: &str, now: u64) {
        self.list_at = Some(now + LIBVIRT_EVERY_USEC);
        for member in self.members.iter_mut().filter(|m| m.is_domain()) {
            if member.phase == Phase::Idle {
                member.trouble = Some(why.to_owned());
                let timeout = u64::try_from(member.guest.timeout.as_micros()).unwrap_or(0);
                member.until_usec.get_or_insert(now + timeout);
            }
        }
    }

    /// The devices of domains whose VFs are not listed.
    fn read_xml(&mut self) {
        for position in 0..self.members.len() {
            let Some(member) = self.members.get(position) else { continue };
            if member.needs.is_some() || member.domain.is_none() || !self.is_watched(member) {
                continue;
            }
            let handle = member.handle().to_owned();
            let task = Task::Xml(position);
            if !self.tasks.any(|t| *t == task) {
                self.tasks.queue(task, &handle);
            }
        }
    }

    fn look_at_units(&mut self) {
        let units: Vec<usize> = (0..self.members.len())
            .filter(|i| self.members.get(*i).is_some_and(|m| !m.is_domain()))
            .collect();
        if units.is_empty() {
            return;
        }
        let names: Vec<String> = units
            .iter()
            .filter_map(|i| self.members.get(*i))
            .map(|m| m.guest.what.name().to_owned())
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let states = match Manager::open(&names) {
            Ok((_, states)) => states,
            Err(e) => {
                // Their start will say it again, each for itself.
                self.report.problems.insert(format!("systemd cannot be asked: {e}"));
                return;
            }
        };
        for (position, unit) in units.into_iter().zip(states) {
            let Some(member) = self.members.get_mut(position) else { continue };
            if unit.is_active() {
                member.phase = Phase::Up { already: true };
                member.up_usec = Some(clock::monotonic_usec());
            } else if !unit.is_loaded() {
                let why = format!("systemd has no such unit that it could start ({})", unit.load);
                member.phase = Phase::Failed { why };
            }
        }
    }

    /// True for who is not started yet; who only looks, looks at all.
    fn is_watched(&self, member: &Member) -> bool {
        member.phase == Phase::Idle || self.only_look
    }

    fn has_vfs_to_watch(&self) -> bool {
        self.members.iter().any(|m| self.is_watched(m) && m.has_vfs())
    }

    /// Take in what a look at the VFs has shown; true if one has ended.
    fn see(&mut self) -> bool {
        let seen = self.sight.seen();
        self.report.problems.append(&mut self.sight.problems);
        let is_fresh = seen.is_some();
        if let Some(seen) = seen {
            let all = self.only_look;
            for member in self.members.iter_mut().filter(|m| all || m.phase == Phase::Idle) {
                let Some(needs) = &member.needs else { continue };
                if needs.iter().all(|need| seen.contains_key(need)) {
                    let states = needs.iter().filter_map(|need| seen.get(need).cloned().flatten());
                    member.vfs = Some(states.collect());
                }
            }
        }
        is_fresh
    }

    /// Look at the VFs of those that are not started yet, if it is time to.
    fn look(&mut self, now: u64) {
        // What was seen a while ago is no ground to start anybody.
        let due = now >= self.look_at || !self.only_look && self.can_start_any();
        if due && !self.sight.is_looking() && self.has_vfs_to_watch() {
            let idle = self.members.iter().filter(|m| self.is_watched(m));
            let needs: BTreeSet<Need> =
                idle.filter_map(|m| m.needs.as_ref()).flatten().copied().collect();
            self.sight.begin(needs.into_iter());
            self.look_at = now + LOOK_EVERY_USEC;
        }
    }

    fn standings(&self) -> Vec<Standing> {
        let standing = |m: &Member| Standing {
            phase: m.phase.clone(),
            is_right: m.is_right(),
            after: m.guest.after.clone(),
        };
        self.members.iter().map(standing).collect()
    }

    fn can_start_any(&self) -> bool {
        !startable(&self.standings(), self.config.guests.max_parallel).is_empty()
    }

    /// Start who may go. Who needs VFs goes only if they were looked at just now.
    fn start(&mut self, now: u64, is_fresh: bool) {
        let mut standings = self.standings();
        for (standing, member) in standings.iter_mut().zip(&self.members) {
            standing.is_right &= is_fresh || !member.has_vfs();
        }
        for position in startable(&standings, self.config.guests.max_parallel) {
            self.told.remove(&position);
            let Some(member) = self.members.get_mut(position) else { continue };
            member.started_usec.get_or_insert(now);
            let timeout = u64::try_from(member.guest.timeout.as_micros()).unwrap_or(u64::MAX / 4);
            let until = *member.until_usec.get_or_insert(now + timeout);
            let handle = member.handle().to_owned();
            member.phase = Phase::Starting { since_usec: now };
            let is_domain = member.is_domain();
            self.emit(position, kinds::GUEST_STARTING, Level::Info, "is being started", &[]);
            let task = match self.deadlock(position) {
                _ if is_domain => Task::Start(position),
                None => Task::Unit(position, true),
                Some(why) => {
                    let said = format!("is started and not waited for: {why}");
                    self.emit(position, kinds::WARNING, Level::Warn, &said, &[]);
                    if let Some(member) = self.members.get_mut(position) {
                        member.phase = Phase::Issued { why };
                    }
                    Task::Unit(position, false)
                }
            };
            if let Err(e) = self.tasks.begin(task.clone(), &handle, until) {
                self.take(Done { task, result: Err(e) }, now);
            }
        }
    }

    /// Why the start of this unit cannot end before ours has; `None` if it can.
    fn deadlock(&mut self, position: usize) -> Option<String> {
        let own = self.own_unit.clone()?;
        let What::Unit(unit) = &self.members.get(position)?.guest.what else { return None };
        let graph = match unit_graph(unit.as_str()) {
            Ok(graph) => graph,
            Err(e) => {
                return Some(format!("systemd does not say what it is ordered after: {e}"));
            }
        };
        let chain = waits_for_us(&graph, &own, unit.as_str())?;
        Some(format!("it is ordered after this unit, which is not up yet: {}", chain.join(" < ")))
    }

    fn take(&mut self, done: Done, now: u64) {
        let Done { task, result } = done;
        match task {
            Task::ListAll => self.listed(0, result, now),
            Task::ListActive => self.listed(1, result, now),
            Task::ListAutostart => self.listed(2, result, now),
            Task::Xml(position) => self.take_xml(position, result, now),
            Task::Start(position) => match result {
                // Read back, not believed.
                Ok(_) => self.next(position, Task::Check(position), now),
                Err(why) if lost_libvirt(&why) => self.start_lost(position, &why, now),
                Err(why) => {
                    // Somebody else may have been quicker.
                    self.told.insert(position, why);
                    self.next(position, Task::Check(position), now);
                }
            },
            Task::Check(position) => self.take_check(position, result, now),
            Task::Ping(position) => match result {
                Ok(_) => self.up(position, now),
                Err(why) => {
                    self.told.insert(position, format!("its guest agent does not answer: {why}"));
                    self.next(position, Task::AwaitAgent(position), now);
                }
            },
            // Whatever it heard, the agent is asked.
            Task::AwaitAgent(position) => self.next(position, Task::Ping(position), now),
            Task::Unit(position, wait) => match (result, wait) {
                (Ok(_), true) => self.up(position, now),
                (Ok(_), false) => {}
                (Err(why), _) => self.fail(position, why),
            },
            Task::Autostarted(name) => self.take_autostarted(&name, result),
        }
    }

    /// The next thing to do for a guest that is being started.
    fn next(&mut self, position: usize, task: Task, now: u64) {
        let Some(member) = self.members.get(position) else { return };
        let until = member.until_usec.unwrap_or(now);
        if now >= until {
            let why = self.told.remove(&position).unwrap_or_default();
            let text = format!("not up after {} s: {why}", member.guest.timeout.as_secs());
            return self.fail(position, text);
        }
        let handle = member.handle().to_owned();
        if let Err(e) = self.tasks.begin(task, &handle, until) {
            self.fail(position, e);
        }
    }

    fn take_xml(&mut self, position: usize, result: Result<String, String>, now: u64) {
        match result.map(|xml| hostdevs(&xml)) {
            Ok(Ok(functions)) => {
                if let Some(member) = self.members.get_mut(position) {
                    if functions.is_empty() {
                        member.vfs = Some(Vec::new());
                    }
                    member.needs = Some(functions.into_iter().map(Need::Function).collect());
                    self.look_at = 0;
                }
            }
            Ok(Err(why)) => self.fail(position, format!("its XML cannot be understood: {why}")),
            Err(why) if lost_libvirt(&why) => self.lose_libvirt(&why, now),
            Err(why) => self.fail(position, format!("its XML cannot be read: {why}")),
        }
    }

    /// libvirt went away under a start: the domain may be up, or not.
    fn start_lost(&mut self, position: usize, why: &str, now: u64) {
        if let Some(member) = self.members.get_mut(position) {
            member.phase = Phase::Idle;
        }
        self.lose_libvirt(&format!("libvirt went away: {why}"), now);
        self.list_at = Some(now);
    }

    fn take_check(&mut self, position: usize, result: Result<String, String>, now: u64) {
        let Some(member) = self.members.get(position) else { return };
        match result {
            Err(why) => self.start_lost(position, &why, now),
            Ok(active) => {
                let own = member.domain.as_ref().map(|(_, name)| name.as_str());
                let is_active = active.lines().any(|line| Some(line.trim_end()) == own);
                let agent = member.guest.ready == Ready::Agent;
                let said = self.told.remove(&position);
                match (is_active, said) {
                    (true, _) if agent => self.next(position, Task::Ping(position), now),
                    (true, _) => self.up(position, now),
                    (false, Some(why)) => self.fail(position, format!("virsh start: {why}")),
                    (false, None) => {
                        let why = "libvirt reported its start as done, but it does not run: it has ended again, see `virsh domstate --reason`";
                        self.fail(position, why.to_owned());
                    }
                }
            }
        }
    }

    fn up(&mut self, position: usize, now: u64) {
        let Some(member) = self.members.get_mut(position) else { return };
        let since =
            if let Phase::Starting { since_usec } = member.phase { since_usec } else { now };
        member.phase = Phase::Up { already: false };
        member.up_usec = Some(now);
        self.told.remove(&position);
        let took = now.saturating_sub(since);
        let fields = [("IBPROV_TOOK_USEC", took.to_string())];
        self.emit(position, kinds::GUEST_UP, Level::Info, "is up", &fields);
    }

    fn fail(&mut self, position: usize, why: String) {
        let Some(member) = self.members.get_mut(position) else { return };
        self.told.remove(&position);
        let said = format!("is not up: {why}");
        let fields = [("IBPROV_CAUSE", why.clone())];
        member.phase = Phase::Failed { why };
        self.emit(position, kinds::GUEST_FAILED, Level::Error, &said, &fields);
    }

    /// Those for whom libvirt did not come back in time.
    fn give_up(&mut self, now: u64) {
        for position in 0..self.members.len() {
            let Some(member) = self.members.get(position) else { continue };
            let late = member.until_usec.is_some_and(|until| now >= until);
            if member.phase == Phase::Idle
                && late
                && let Some(why) = member.trouble.clone()
            {
                self.fail(position, why);
            }
        }
    }

    fn first_pass_is_over(&self) -> bool {
        let is_known = |m: &Member| m.vfs.is_some() || m.phase.is_settled();
        self.members.iter().all(is_known)
            && !self.members.iter().any(|m| matches!(m.phase, Phase::Starting { .. }))
            && !self.members.iter().any(|m| m.phase == Phase::Idle && m.trouble.is_some())
            && self.tasks.is_idle()
            && !self.sight.is_looking()
            && !self.can_start_any()
    }

    /// All is known that can be known without starting anybody.
    fn is_looked_at(&self) -> bool {
        let is_known = |m: &Member| {
            m.vfs.is_some() || matches!(m.phase, Phase::Failed { .. }) || m.trouble.is_some()
        };
        self.members.iter().all(is_known) && self.tasks.is_idle() && !self.sight.is_looking()
    }

    fn end_first_pass(&mut self, now: u64) {
        self.is_first_pass = false;
        for position in 0..self.members.len() {
            let Some(member) = self.members.get(position) else { continue };
            if member.phase == Phase::Idle
                && member.guest.on_failure == OnFailure::Report
                && let Some(wrong) = member.wrong_vfs()
            {
                self.fail(position, wrong);
            }
        }
        self.report.ready_usec = Some(now);
        let level = if self.members.iter().all(|m| m.phase.is_settled()) {
            Level::Info
        } else {
            Level::Warn
        };
        let line = self.headline();
        journal::emit(kinds::GUESTS_READY, level, &format!("first pass: {line}"), &[]);
        if let Err(e) = systemd::ready(&line) {
            log::debug!("cannot tell systemd: {e}");
        }
        // From here on nobody waits for us, so everybody can be waited for.
        self.own_unit = None;
        for position in 0..self.members.len() {
            let Some(member) = self.members.get(position) else { continue };
            if matches!(member.phase, Phase::Issued { .. }) {
                let (handle, until) =
                    (member.handle().to_owned(), member.until_usec.unwrap_or(now));
                let task = Task::Unit(position, true);
                if let Err(e) = self.tasks.begin(task.clone(), &handle, until) {
                    self.take(Done { task, result: Err(e) }, now);
                }
            }
        }
        self.read_autostarted();
    }

    /// libvirt starts these whatever their VFs are like.
    fn read_autostarted(&mut self) {
        let Some(domains) = &self.domains else { return };
        let all: Vec<(String, String)> =
            domains.autostarted().map(|(n, u)| (n.to_owned(), u.to_owned())).collect();
        for (name, uuid) in all {
            self.tasks.queue(Task::Autostarted(name), &uuid);
        }
    }

    fn take_autostarted(&mut self, name: &str, result: Result<String, String>) {
        let functions = result.and_then(|xml| hostdevs(&xml));
        let vfs: Vec<String> = match functions {
            Ok(functions) => functions
                .into_iter()
                .filter(|pci| self.sight.is_hca_vf(*pci))
                .map(|pci| pci.to_string())
                .collect(),
            Err(e) => {
                self.report.problems.insert(format!("XML of domain {name}: {e}"));
                return;
            }
        };
        if vfs.is_empty() {
            return;
        }
        let text = format!(
            "domain {name} has autostart on and VF {}: libvirt starts it whether or not that is right; `virsh autostart --disable` it and list it as [[guest]], or let a qemu hook look at /run/ibprov/boot.json",
            vfs.join(", ")
        );
        journal::emit(kinds::WARNING, Level::Warn, &text, &[("IBPROV_WARNING", text.clone())]);
        self.report.problems.insert(text);
    }

    fn is_over(&self) -> bool {
        let open = |m: &Member| !matches!(m.phase, Phase::Up { .. } | Phase::Failed { .. });
        self.tasks.is_idle() && !self.members.iter().any(open)
    }

    /// Why a guest has not been started yet, in words.
    fn why(&self, position: usize) -> Option<String> {
        let member = self.members.get(position)?;
        if member.phase != Phase::Idle {
            return None;
        }
        if let Some(trouble) = &member.trouble {
            return Some(trouble.clone());
        }
        if let Some(wrong) = member.wrong_vfs() {
            return Some(wrong);
        }
        let standings = self.standings();
        if let Some(before) = first_before(&standings, standings.get(position)?)
            .and_then(|before| self.members.get(before))
        {
            return Some(format!("it comes after {}, which is not up yet", before.guest.what));
        }
        let why = match &member.vfs {
            None => "its VFs are being looked at",
            Some(_) if self.only_look => return None,
            Some(_) => "others are being started",
        };
        Some(why.to_owned())
    }

    /// Bring status, report and journal up to date.
    fn tell(&mut self) {
        let whys: Vec<Option<String>> = (0..self.members.len()).map(|i| self.why(i)).collect();
        if !self.is_first_pass {
            for (position, why) in whys.iter().enumerate() {
                let Some(why) = why else { continue };
                if self.told.get(&position) != Some(why) {
                    self.told.insert(position, why.clone());
                    let fields = [("IBPROV_CAUSE", why.clone())];
                    self.emit(
                        position,
                        kinds::GUEST_WAITS,
                        Level::Warn,
                        &format!("waits: {why}"),
                        &fields,
                    );
                }
            }
        }
        self.report.fill(&self.members, &whys);
        let json = serde_json::to_string_pretty(&self.report).unwrap_or_default();
        if json == self.written {
            return;
        }
        if let Err((path, e)) = state::write("guests.json", &json) {
            let e = crate::host::answer(&e);
            self.report.problems.insert(format!("cannot write {}: {e}", path.display()));
        }
        self.written = json;
        if let Err(e) = systemd::status(&self.headline()) {
            log::debug!("cannot tell systemd the status: {e}");
        }
    }

    fn headline(&self) -> String {
        let up = self.members.iter().filter(|m| matches!(m.phase, Phase::Up { .. })).count();
        let mut line = format!("{up} of {} guests up", self.members.len());
        let first = (0..self.members.len()).find_map(|i| Some((i, self.why(i)?)));
        if let Some((position, why)) = first
            && let Some(member) = self.members.get(position)
        {
            line = format!("{line}; {} waits: {why}", member.guest.what);
        }
        line
    }

    fn emit(&self, position: usize, kind: &str, level: Level, said: &str, more: &[(&str, String)]) {
        let Some(member) = self.members.get(position).filter(|_| !self.only_look) else { return };
        let mut fields = vec![("IBPROV_GUEST", member.guest.what.name().to_owned())];
        fields.extend(more.iter().cloned());
        journal::emit(kind, level, &format!("{} {said}", member.guest.what), &fields);
    }

    fn finish(&mut self) {
        self.tell();
        self.report.finish(clock::monotonic_usec());
        if let Ok(json) = serde_json::to_string_pretty(&self.report)
            && let Err((path, e)) = state::write("guests.json", &json)
        {
            let e = crate::host::answer(&e);
            self.report.problems.insert(format!("cannot write {}: {e}", path.display()));
        }
    }

    fn connection(&self) -> &str {
        self.config.guests.connection.as_str()
    }
}

/// The units that are loaded, and `unit`, with their orders and jobs.
fn unit_graph(unit: &str) -> std::io::Result<Graph> {
    let properties = format!("--property={}", show::PROPERTIES);
    let args = ["show", "--no-pager", &properties, "--", "*", unit];
    let until = clock::monotonic_usec() + QUESTION_USEC;
    let text = process::output_until("systemctl", &args, until)?.into_text("systemctl", &args)?;
    Ok(show::graph(&text, "multi-user.target"))
}
