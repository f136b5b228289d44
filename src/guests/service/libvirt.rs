//! What libvirt is asked, and what it says: which domains there are, what
//! they need, and what becomes of guests while it does not answer.

use log::Level;

use super::{LIBVIRT_EVERY_USEC, Service};
use crate::guests::domain::{Domains, hostdevs, lost_libvirt};
use crate::guests::tasks::{Done, QUESTION_USEC, Task};
use crate::guests::vf::Need;
use crate::host::{clock, journal};
use crate::report::events as kinds;
use crate::report::guests::Phase;

impl Service<'_> {
    /// Ask which domains there are and how they are, unless that is under way.
    pub(super) fn ask_libvirt(&mut self) {
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

    pub(super) fn listed(&mut self, which: usize, result: Result<String, String>, now: u64) {
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
    pub(super) fn lose_libvirt(&mut self, why: &str, now: u64) {
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
    pub(super) fn read_xml(&mut self) {
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

    pub(super) fn take_xml(&mut self, position: usize, result: Result<String, String>, now: u64) {
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
    pub(super) fn start_lost(&mut self, position: usize, why: &str, now: u64) {
        if let Some(member) = self.members.get_mut(position) {
            member.phase = Phase::Idle;
        }
        self.lose_libvirt(&format!("libvirt went away: {why}"), now);
        self.list_at = Some(now);
    }

    /// libvirt starts these whatever their VFs are like.
    pub(super) fn read_autostarted(&mut self) {
        let Some(domains) = &self.domains else { return };
        let all: Vec<(String, String)> =
            domains.autostarted().map(|(n, u)| (n.to_owned(), u.to_owned())).collect();
        for (name, uuid) in all {
            self.tasks.queue(Task::Autostarted(name), &uuid);
        }
    }

    pub(super) fn take_autostarted(&mut self, name: &str, result: Result<String, String>) {
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
            "domain {name} has autostart on and VF {}: libvirt starts it whether or not that is right; `virsh autostart --disable` it and list it as [[guest]], or install the example libvirt-qemu-hook of ibprov",
            vfs.join(", ")
        );
        journal::emit(kinds::WARNING, Level::Warn, &text, &[("IBPROV_WARNING", text.clone())]);
        self.report.problems.insert(text);
    }

    pub(super) fn connection(&self) -> &str {
        self.config.guests.connection.as_str()
    }

    /// Those for whom libvirt did not come back in time.
    pub(super) fn give_up(&mut self, now: u64) {
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
}
