use std::collections::VecDeque;
use std::io;
use std::path::Path;

use super::failure::{Failure, output};
use crate::config::guest::GuestIndex;
use crate::host::process::{self, Running};
use crate::host::virsh::Virsh;
use crate::names::UnitName;

/// The verb of the child that starts a unit, not shown to users.
pub const START_UNIT: &str = "start-unit";

/// What a child is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Task {
    /// Ask libvirt for a list of its domains.
    List(List),
    /// Ask libvirt for a guest's XML.
    Xml(GuestIndex),
    /// Bring a domain up, one step of it.
    Domain(GuestIndex, Step),
    /// Start a unit.
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
    /// Every one of them.
    pub(super) const EACH: [Self; 3] = [Self::All, Self::Active, Self::Autostart];
}

/// What is done to bring a domain up, and to see that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Let libvirt start it.
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

/// The children at work.
#[derive(Debug)]
pub(super) struct Tasks {
    virsh: Option<Virsh>,
    running: Vec<(Task, Running, u64)>,
    /// Questions that wait for their turn.
    queue: VecDeque<(Task, String)>,
}

/// How many questions libvirt is asked at the same time.
const QUESTIONS: usize = 4;
/// How long libvirt may take to answer one. Starting it by its socket is part of
/// that.
pub(super) const QUESTION_USEC: u64 = 30_000_000;

/// A child that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) task: Task,
    /// What it wrote to standard output, or how it failed.
    pub(super) result: Result<String, Failure>,
}

impl Tasks {
    pub(super) const fn new(virsh: Option<Virsh>) -> Self {
        Self { virsh, running: Vec::new(), queue: VecDeque::new() }
    }

    pub(super) const fn has_virsh(&self) -> bool {
        self.virsh.is_some()
    }

    pub(super) fn any(&self, wanted: impl Fn(&Task) -> bool) -> bool {
        let running = self.running.iter().map(|(task, ..)| task);
        running.chain(self.queue.iter().map(|(task, _)| task)).any(wanted)
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
    pub(super) fn ask_next(&mut self, now: u64) -> Vec<Done> {
        let mut done = Vec::new();
        let is_question = |task: &Task| matches!(task, Task::Xml(_) | Task::Autostarted(_));
        while self.running.iter().filter(|(t, ..)| is_question(t)).count() < QUESTIONS {
            let Some((task, on)) = self.queue.pop_front() else { break };
            if let Err(e) = self.begin(task.clone(), &on, now + QUESTION_USEC) {
                done.push(Done { task, result: Err(e) });
            }
        }
        done
    }

    /// The earliest time at which one of them is ended.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.running.iter().map(|(_, _, until)| *until).min()
    }

    /// Begin to do it, with what it is done on: a domain's UUID, or a unit.
    pub(super) fn begin(&mut self, task: Task, on: &str, until_usec: u64) -> Result<(), Failure> {
        let started = match &task {
            Task::Unit(_, wait) => start_unit(on, *wait == Wait::ForEnd, until_usec),
            _ => self.virsh(&task, on, until_usec),
        };
        match started {
            Ok(running) => {
                self.running.push((task, running, until_usec));
                Ok(())
            }
            Err(e) => Err(Failure::not_started(&e)),
        }
    }

    fn virsh(&self, task: &Task, domain: &str, until_usec: u64) -> io::Result<Running> {
        let virsh =
            self.virsh.as_ref().ok_or_else(|| io::Error::other("virsh is not installed"))?;
        let left = until_usec.saturating_sub(crate::host::clock::monotonic_usec()) / 1_000_000;
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
            Task::Unit(..) => Err(io::Error::other("not for virsh")),
        }
    }

    /// Those that have ended, or had to be.
    pub(super) fn collect(&mut self, now: u64) -> Vec<Done> {
        let mut done = Vec::new();
        let mut running = Vec::new();
        for (task, mut child, until) in std::mem::take(&mut self.running) {
            match child.ended() {
                Ok(Some(ended)) => {
                    done.push(Done { task, result: output(ended, &child.command_line) });
                }
                Err(e) => done.push(Done { task, result: Err(Failure::not_started(&e)) }),
                Ok(None) if now >= until => {
                    // It has asked libvirt or systemd; what that does is not undone.
                    let killed = child.kill();
                    let result = Err(Failure::late(&child.command_line, killed));
                    done.push(Done { task, result });
                }
                Ok(None) => running.push((task, child, until)),
            }
        }
        self.running = running;
        done
    }
}

/// How long one wait for a guest agent's event lasts at most. The agent may
/// have come before the wait began: it is asked again after it.
const AGENT_SEC: u64 = 10;

fn start_unit(unit: &str, wait: bool, until_usec: u64) -> io::Result<Running> {
    let mut args = vec![START_UNIT.to_owned(), format!("--until={until_usec}")];
    if !wait {
        args.push("--no-wait".to_owned());
    }
    args.extend(["--".to_owned(), unit.to_owned()]);
    process::start_collecting(Path::new("/proc/self/exe"), &args)
}

/// The child: start `unit` and, with `wait`, see its job to its end.
///
/// # Errors
/// systemd could not be asked, or the unit did not come up, and why.
pub fn serve_start(unit: &UnitName, wait: bool, until_usec: u64) -> anyhow::Result<()> {
    use crate::host::clock::monotonic_usec;
    use crate::host::manager::Manager;
    use crate::host::unit::JobEnd;
    let name = unit.as_str();
    let (mut manager, _) = Manager::open(&[])?;
    if !wait {
        if manager.bus().is_some() {
            manager.start(name, monotonic_usec())?;
        } else {
            let args = ["start", "--no-block", "--no-ask-password", "--", name];
            process::output_until("systemctl", &args, until_usec)?.into_text("systemctl", &args)?;
        }
        return Ok(());
    }
    let end = manager.start(name, until_usec)?;
    let states = manager.units(&[name])?;
    let Some(state) = states.first() else { anyhow::bail!("systemd says nothing of it") };
    match end {
        JobEnd::Pending => anyhow::bail!("its start has not ended in time ({})", state.active),
        // A condition that did not hold ends the job well, and starts nothing.
        JobEnd::Done if state.is_active() || state.condition => Ok(()),
        JobEnd::Done => anyhow::bail!("a condition of the unit did not hold"),
        JobEnd::Failed => {
            let result = if state.result.is_empty() { "see its log" } else { &state.result };
            anyhow::bail!("its start failed ({result}): journalctl -u {name}")
        }
    }
}
