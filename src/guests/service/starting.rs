//! Who is started now, and what becomes of it.

use log::Level;

use super::Service;
use crate::config::guest::What;
use crate::graph::{Graph, show};
use crate::guests::deadlock::waits_for_us;
use crate::guests::domain::lost_libvirt;
use crate::guests::member::Member;
use crate::guests::order::{Standing, startable};
use crate::guests::tasks::{Done, QUESTION_USEC, Task};
use crate::host::{clock, process};
use crate::names::Ready;
use crate::report::events as kinds;
use crate::report::guests::Phase;

impl Service<'_> {
    pub(super) fn can_start_any(&self) -> bool {
        !startable(&self.standings(), self.config.guests.max_parallel).is_empty()
    }

    /// Start who may go. Who needs VFs goes only if they were looked at just now.
    pub(super) fn start(&mut self, now: u64, is_fresh: bool) {
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
    pub(super) fn deadlock(&mut self, position: usize) -> Option<String> {
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

    pub(super) fn take(&mut self, done: Done, now: u64) {
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
                Err(why) if lost_libvirt(&why) => self.start_lost(position, &why, now),
                // It has no channel for one: none will ever answer.
                Err(why) if why.contains("guest agent is not configured") => {
                    self.fail(position, format!("it runs, but {why}"));
                }
                Err(why) => {
                    self.told.insert(position, format!("its guest agent does not answer: {why}"));
                    self.next(position, Task::AwaitAgent(position), now);
                }
            },
            Task::AwaitAgent(position) => match result {
                // Its time is over, which `next` says, with what the agent lacked.
                Err(_) if self.is_late(position, now) => {
                    self.next(position, Task::Ping(position), now);
                }
                // Said in words it is a failure; a wait that ends without an event
                // says nothing.
                Err(why) if lost_libvirt(&why) => self.start_lost(position, &why, now),
                Err(why) if !why.contains("exit status") => {
                    self.fail(position, format!("its guest agent cannot be waited for: {why}"));
                }
                // Whatever was heard, the agent is asked.
                _ => self.next(position, Task::Ping(position), now),
            },
            Task::Unit(position, wait) => match (result, wait) {
                (Ok(_), true) => self.up(position, now),
                (Ok(_), false) => {}
                (Err(why), _) => self.fail(position, why),
            },
            Task::Autostarted(name) => self.take_autostarted(&name, result),
        }
    }

    fn is_late(&self, position: usize, now: u64) -> bool {
        let until = self.members.get(position).and_then(|member| member.until_usec);
        until.is_some_and(|until| now >= until)
    }

    /// The next thing to do for a guest that is being started.
    pub(super) fn next(&mut self, position: usize, task: Task, now: u64) {
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

    pub(super) fn take_check(&mut self, position: usize, result: Result<String, String>, now: u64) {
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

    pub(super) fn up(&mut self, position: usize, now: u64) {
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

    pub(super) fn fail(&mut self, position: usize, why: String) {
        let Some(member) = self.members.get_mut(position) else { return };
        self.told.remove(&position);
        let said = format!("is not up: {why}");
        let fields = [("IBPROV_CAUSE", why.clone())];
        member.phase = Phase::Failed { why };
        self.emit(position, kinds::GUEST_FAILED, Level::Error, &said, &fields);
    }

    pub(super) fn standings(&self) -> Vec<Standing> {
        let standing = |m: &Member| Standing {
            phase: m.phase.clone(),
            is_right: m.is_right(),
            after: m.guest.after.clone(),
        };
        self.members.iter().map(standing).collect()
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
