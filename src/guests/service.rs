//! The loop of `ibprov guests`.

mod libvirt;
mod starting;
mod telling;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use log::Level;

use super::domain::Domains;
use super::member::Member;
use super::order::{Standing, startable};
use super::sight::Sight;
use super::tasks::{Done, Task, Tasks};
use super::vf::Need;
use crate::config::Config;
use crate::host::events::{Events, Happened};
use crate::host::manager::Manager;
use crate::host::virsh::Virsh;
use crate::host::{Root, clock, journal, lock, systemd};
use crate::names::OnFailure;
use crate::report::events as kinds;
use crate::report::guests::{GuestsReport, Phase};

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
    let mut watched = vec![Path::new("/run/udev")];
    let locks = lock::Locks::in_run();
    match &locks {
        Ok(locks) => watched.push(locks.dir()),
        Err(e) => {
            report.problems.insert(format!("{e}: the end of an apply is not heard"));
        }
    }
    let mut events = Events::open(&watched)?;
    events.listen_to_links();
    events.watch_new_files(Path::new(LIBVIRT_DIR));
    report.problems.extend(std::mem::take(&mut events.problems));
    let members: Vec<Member> = config.guests.list.iter().cloned().map(Member::new).collect();
    let own_unit = systemd::own_unit(root).unwrap_or_else(|e| {
        report.problems.insert(format!("{e}: taken for no unit, whose start nobody waits for"));
        None
    });
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
        own_unit,
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
                    self.report.guests = self.guest_reports();
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
        if happened.links || happened.files || happened.to_devices() {
            self.look_at = 0;
        }
        if happened.files && self.list_at.is_some() {
            self.list_at = Some(0);
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

    fn is_over(&self) -> bool {
        let open = |m: &Member| !matches!(m.phase, Phase::Up { .. } | Phase::Failed { .. });
        self.tasks.is_idle() && !self.members.iter().any(open)
    }
}
