//! The children at work: what each is for, how long it may take, and how it
//! ended. A child that hangs with virsh or systemd is killed and delays nobody.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::failure::{Failure, output};
use crate::config::guest::GuestIndex;
use crate::host::process::Running;
use crate::host::virsh::Virsh;
use crate::names::{Moment, UnitName};
use crate::workers::{Client, Request};

/// What a child is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Task {
    /// Ask libvirt for a list of its domains.
    List(List),
    /// Ask libvirt for a guest's XML.
    Xml(GuestIndex),
    /// Bring a domain up, one step of it.
    Domain(GuestIndex, Step),
    Unit(GuestIndex, Wait),
    /// Ask libvirt for the XML of the domain of this name, which it starts by
    /// itself.
    Autostarted(String),
}

impl Task {
    /// The guest that it is done on, if it is one.
    pub(super) const fn guest(&self) -> Option<GuestIndex> {
        match self {
            Self::Xml(guest) | Self::Domain(guest, _) | Self::Unit(guest, _) => Some(*guest),
            Self::List(_) | Self::Autostarted(_) => None,
        }
    }
}

/// The lists that together say which domains there are and how they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum List {
    /// The names and UUIDs of all domains.
    All,
    /// The names of the active ones.
    Active,
    /// The names of those that libvirt starts by itself.
    Autostart,
}

impl List {
    pub(super) const EACH: [Self; 3] = [Self::All, Self::Active, Self::Autostart];
}

/// What is done to bring a domain up, and to see that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Start,
    /// List the active domains, to see whether it is among them.
    Check,
    /// Ask its guest agent for a sign of life.
    Ping,
    /// Wait until its guest agent comes or goes.
    AwaitAgent,
}

/// Whether a unit's start is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Until its job has ended.
    ForEnd,
    /// Only until systemd has taken the job.
    No,
}

#[derive(Debug)]
pub(super) struct Tasks {
    pub(super) virsh: Option<Virsh>,
    running: Vec<(Task, Work, Moment)>,
    /// Questions that wait for their turn.
    queue: VecDeque<(Task, String)>,
}

#[derive(Debug)]
enum Work {
    Virsh(Running),
    Unit(UnitName, Client<'static>),
}

/// How many questions libvirt is asked at the same time.
const QUESTIONS: usize = 4;
/// How long libvirt may take to answer one. Starting it by its socket is part of
/// that.
pub(super) const QUESTION: Duration = Duration::from_secs(30);

/// A child that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub task: Task,
    /// What it wrote to standard output, or how it failed.
    pub result: Result<String, Failure>,
}

impl Tasks {
    pub(super) const fn new(virsh: Option<Virsh>) -> Self {
        Self { virsh, running: Vec::new(), queue: VecDeque::new() }
    }

    pub(super) fn any(&self, wanted: impl Fn(&Task) -> bool) -> bool {
        let running = self.running.iter().map(|(task, ..)| task);
        running.chain(self.queue.iter().map(|(task, _)| task)).any(wanted)
    }

    /// How many of those at work are meant.
    pub(super) fn count(&self, is_meant: impl Fn(&Task) -> bool) -> usize {
        self.running.iter().filter(|(task, ..)| is_meant(task)).count()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.queue.is_empty()
    }

    /// Ask a question about `on` when its turn has come.
    pub(super) fn queue(&mut self, task: Task, on: &str) {
        self.queue.push_back((task, on.to_owned()));
    }

    /// Begin the questions whose turn has come; those that cannot be begun have
    /// ended.
    pub(super) fn ask_next(&mut self, now: Moment) -> Vec<Done> {
        let mut done = Vec::new();
        let is_question = |task: &Task| matches!(task, Task::Xml(_) | Task::Autostarted(_));
        while self.running.iter().filter(|(t, ..)| is_question(t)).count() < QUESTIONS {
            let Some((task, on)) = self.queue.pop_front() else { break };
            if let Err(e) = self.begin(task.clone(), &on, now + QUESTION) {
                done.push(Done { task, result: Err(e) });
            }
        }
        done
    }

    /// The earliest time at which one of them is ended.
    pub(super) fn next_deadline(&self) -> Option<Moment> {
        self.running.iter().map(|(_, _, until)| *until).min()
    }

    /// Begin to do it, with what it is done on: a domain's UUID, or a unit.
    pub(super) fn begin(&mut self, task: Task, on: &str, until: Moment) -> Result<(), Failure> {
        let started = match &task {
            Task::Unit(_, wait) => start_unit(on, *wait == Wait::ForEnd, until),
            _ => self.virsh(&task, on, until).map(Work::Virsh),
        };
        self.running.push((task, started.map_err(|e| Failure::not_started(&e))?, until));
        Ok(())
    }

    /// What can be read when a child has answered; that others have ended is heard by
    /// SIGCHLD.
    pub(super) fn answers_come(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.running.iter().filter_map(|(_, work, _)| match work {
            Work::Unit(_, client) => client.fd(),
            Work::Virsh(_) => None,
        })
    }

    fn virsh(&self, task: &Task, domain: &str, until: Moment) -> io::Result<Running> {
        let virsh =
            self.virsh.as_ref().ok_or_else(|| io::Error::other("virsh is not installed"))?;
        let left = until.since(crate::host::clock::now()).as_secs();
        let timeout = left.clamp(1, AGENT_SEC).to_string();
        match task {
            Task::List(List::All) => virsh.start(&["list", "--all", "--uuid", "--name"], &[]),
            Task::List(List::Active) | Task::Domain(_, Step::Check) => {
                virsh.start(&["list", "--name"], &[])
            }
            Task::List(List::Autostart) => {
                virsh.start(&["list", "--all", "--autostart", "--name"], &[])
            }
            Task::Xml(_) | Task::Autostarted(_) => {
                virsh.start(&["dumpxml", "--inactive"], &[domain])
            }
            Task::Domain(_, Step::Start) => virsh.start(&["start"], &[domain]),
            Task::Domain(_, Step::Ping) => {
                let ping = r#"{"execute":"guest-ping"}"#;
                virsh.start(&["qemu-agent-command", "--timeout", "5"], &[domain, ping])
            }
            Task::Domain(_, Step::AwaitAgent) => {
                let event =
                    ["event", "--event", "agent-lifecycle", "--timeout", &timeout, "--domain"];
                // The domain is the option's own argument: a UUID, never a name.
                let event: Vec<&str> = event.into_iter().chain([domain]).collect();
                virsh.start(&event, &[])
            }
            Task::Unit(..) => Err(io::Error::other("not started by virsh")),
        }
    }

    /// Those that have ended, or had to be.
    pub(super) fn collect(&mut self, now: Moment) -> Vec<Done> {
        let mut done = Vec::new();
        let mut running = Vec::new();
        for (task, mut work, until) in std::mem::take(&mut self.running) {
            match work.result() {
                Some(result) => done.push(Done { task, result }),
                None if now >= until => done.push(Done { task, result: Err(work.give_up()) }),
                None => running.push((task, work, until)),
            }
        }
        self.running = running;
        done
    }
}

/// How long one wait for a guest agent's event lasts at most. The agent may
/// have come before the wait began: it is asked again after it.
const AGENT_SEC: u64 = 10;

/// The child that starts a unit, one for each start: a client's child works on eight
/// requests at a time, and a start may take minutes.
fn start_unit(unit: &str, wait: bool, until: Moment) -> io::Result<Work> {
    let unit: UnitName = unit.parse().map_err(io::Error::other)?;
    let mut client = Client::live().patient();
    client.ask(&Request::StartUnit { unit: unit.clone(), wait, until });
    Ok(Work::Unit(unit, client))
}

impl Work {
    /// What it came to, if it is over: standard output, or how it failed.
    fn result(&mut self) -> Option<Result<String, Failure>> {
        match self {
            Self::Virsh(child) => match child.ended() {
                Ok(ended) => ended.map(|ended| output(ended, &child.command_line)),
                Err(e) => Some(Err(Failure::not_started(&e))),
            },
            Self::Unit(_, client) => {
                let (_, reply) = client.replies().pop()?;
                Some(reply.map(|_| String::new()).map_err(Failure::of_worker))
            }
        }
    }

    /// It is not waited for any longer. What libvirt or systemd does once it was asked
    /// is not undone.
    fn give_up(self) -> Failure {
        match self {
            Self::Virsh(mut child) => {
                let killed = child.kill();
                Failure::late(&child.command_line, killed)
            }
            Self::Unit(unit, _) => Failure::late(&format!("start {unit}"), Ok(())),
        }
    }
}
