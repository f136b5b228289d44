//! The parent's side: one child, and what it was asked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};

use super::child::VERB;
use super::perform::perform;
use super::request::{Answer, Numbered, Request};
use crate::host::lock::{Held, LockError, Locks, RETRY};
use crate::host::process::{self, OwnProcess};
use crate::host::{Root, answer, clock};
use crate::model::{Refusal, Silence};
use crate::names::{Moment, PciAddress, Resource};

/// Who has not answered for so long, is not waited for by those who
/// only look.
pub const SILENCE: Duration = Duration::from_secs(5);

/// What became of a request.
pub type Reply = Result<Answer, Failure>;

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The child cannot be started, was killed, or answers in a way that nobody
    /// understands.
    #[error("cannot start a child process: {0}")]
    NoChild(String),
    /// There was no answer in [`SILENCE`], or there has been none to an earlier query.
    #[error("{0}")]
    Silent(Silence),
    /// The answer is one to another question.
    #[error("an unexpected answer: {0:?}")]
    Unexpected(Box<Answer>),
}

impl Failure {
    /// There was no answer in [`SILENCE`].
    pub const SILENT: Self = Self::Silent(Silence::Within(SILENCE));

    /// What a reply is that is no answer to what was asked.
    pub fn of(reply: Reply) -> Self {
        reply.map_or_else(|failure| failure, |answer| Self::Unexpected(Box::new(answer)))
    }
}

/// Asks a child, which is started with the first question, and anew with the next
/// one after it is gone or was silent for too long. For a copied tree there is no
/// child: what is asked of one is looked up at once, in this process.
///
/// A client is for one HCA: of a card that hangs a child works on eight requests at
/// most, and is left to the kernel as a whole. The answers of another HCA come from
/// another child.
#[derive(Debug, Default)]
pub struct Client<'a> {
    copy: Option<&'a Root>,
    /// It waits for its answers as long as it takes.
    is_patient: bool,
    lock: Option<File>,
    /// The PF at which the child puts back what this process leaves.
    pf: Option<PciAddress>,
    /// What is queried, by one who only looks.
    resource: Option<Resource>,
    link: Option<Link>,
    last: u64,
    /// The questions that wait until no other process queries the resource.
    queued: Vec<String>,
    /// Since when each question waits.
    open: BTreeMap<u64, Moment>,
    ready: Vec<(u64, Reply)>,
}

impl<'a> Client<'a> {
    /// For the host below `root`.
    pub fn new(root: &'a Root) -> Self {
        Self { copy: (!root.is_live()).then_some(root), ..Self::live() }
    }

    pub fn live() -> Self {
        Self::default()
    }

    /// One whose child is whoever has the other end of `stream`.
    #[cfg(test)]
    pub(crate) fn over(stream: UnixStream) -> Self {
        Self { link: Some(Link { child: None, stream, unread: Vec::new() }), ..Self::live() }
    }

    /// The same, and its process is `child`.
    #[cfg(test)]
    pub(crate) fn over_child(stream: UnixStream, child: Child) -> Self {
        Self { link: Some(Link { child: Some(child), stream, unread: Vec::new() }), ..Self::live() }
    }

    /// One that waits as long as it takes: a child that is silent is kept, for it
    /// is at work.
    #[must_use]
    pub fn patient(self) -> Self {
        Self { is_patient: true, ..self }
    }

    /// One whose child puts back what this process leaves at `pf` when that ends, by whatever
    /// end ([`super::undo`]).
    #[must_use]
    pub fn at(self, pf: PciAddress) -> Self {
        Self { pf: Some(pf), ..self }
    }

    /// One who only looks, whose child queries `resource` while no other process does, and logs
    /// nothing. Where the process of an earlier query is still waiting for its answer, none is
    /// started: one that hangs in the kernel cannot be ended, and each look would leave another.
    #[must_use]
    pub fn querying(self, resource: Resource) -> Self {
        Self { resource: Some(resource), ..self }
    }

    /// Start the child now, while its parent looks around. It holds `lock`, and so
    /// does each that follows it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&mut self, lock: Option<&Held>) -> io::Result<()> {
        self.lock = lock.map(Held::share).transpose()?;
        self.link().map(drop)
    }

    /// The child that the next question starts holds `lock`, and so does each that follows it.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn hold(&mut self, lock: &Held) -> io::Result<()> {
        self.lock = Some(lock.share()?);
        Ok(())
    }

    /// Let the child end, unless it owes an answer; the next question starts another one.
    pub fn disconnect(&mut self) {
        if self.open.is_empty()
            && let Some(link) = self.link.take()
        {
            link.end();
        }
    }

    fn link(&mut self) -> io::Result<&mut Link> {
        Ok(match &mut self.link {
            Some(link) => link,
            none => {
                let args: Vec<String> = self.pf.iter().map(ToString::to_string).collect();
                none.insert(Link::start(self.lock.as_ref(), false, &args)?)
            }
        })
    }

    /// Hand the questions over, unless another process queries the resource: then that is tried
    /// again with the next call, or they are silent like the others if its own has been so for
    /// [`SILENCE`].
    fn send(&mut self) {
        if self.queued.is_empty() {
            return;
        }
        if let (Some(resource), None) = (self.resource, &self.link) {
            match query(resource) {
                Ok(link) => self.link = Some(link),
                Err(NotBegun::Failed(e)) => return self.lose(&answer(&e)),
                Err(NotBegun::ByAnother(Some(other))) if other.age > SILENCE => {
                    let started = clock::unix_seconds().saturating_sub(other.age.as_secs());
                    let since = Silence::Since { started, pid: other.pid };
                    return self.end(&Failure::Silent(since));
                }
                Err(NotBegun::ByAnother(_)) => return,
            }
        }
        for line in std::mem::take(&mut self.queued) {
            if let Err(e) = self.link().and_then(|link| link.write(&line)) {
                return self.lose(&answer(&e));
            }
        }
    }

    /// The child's process id, while there is one.
    pub fn pid(&self) -> Option<u32> {
        Some(self.link.as_ref()?.child.as_ref()?.id())
    }

    /// Ask for one thing; the number is that of its reply. The child takes requests
    /// at once, whatever it is busy with, so this does not wait.
    pub fn ask(&mut self, what: &Request) -> u64 {
        let number = self.queue(what);
        self.send();
        number
    }

    /// As [`Client::ask`], but the request is sent by the next call of another method: until
    /// then no child is started for it.
    pub fn queue(&mut self, what: &Request) -> u64 {
        self.last += 1;
        let number = self.last;
        if let Some(root) = self.copy {
            self.ready.push((number, perform(root, what).map_err(Failure::Refused)));
            return number;
        }
        self.open.insert(number, clock::now());
        // Plain values: there is no JSON that they do not make.
        self.queued.push(serde_json::to_string(&Numbered { number, what }).unwrap_or_default());
        number
    }

    /// What has become of questions since the last call. Does not wait.
    pub fn replies(&mut self) -> Vec<(u64, Reply)> {
        self.send();
        match self.link.as_mut().map(Link::read) {
            Some(Ok((lines, is_gone))) => {
                self.take(&lines);
                if is_gone {
                    self.lose("the child was killed");
                }
            }
            Some(Err(e)) => self.lose(&answer(&e)),
            None => {}
        }
        let now = clock::now();
        if !self.is_patient && self.open.values().any(|since| *since + SILENCE <= now) {
            self.give_up();
        }
        if self.resource.is_some() {
            // Others may query it, while this process waits for something else.
            self.disconnect();
        }
        std::mem::take(&mut self.ready)
    }

    fn take(&mut self, lines: &[String]) {
        for line in lines {
            match serde_json::from_str::<Numbered<Result<Answer, Refusal>>>(line) {
                Ok(Numbered { number, what }) => {
                    // Another number is that of a question that was given up.
                    if self.open.remove(&number).is_some() {
                        self.ready.push((number, what.map_err(Failure::Refused)));
                    }
                }
                Err(e) => {
                    self.lose(&format!("the answer is invalid: {e}"));
                    return;
                }
            }
        }
    }

    /// The child is of no use any more.
    fn lose(&mut self, why: &str) {
        self.end(&Failure::NoChild(why.to_owned()));
    }

    /// What is not answered will not be: who hangs is left to the kernel.
    fn give_up(&mut self) {
        self.end(&Failure::SILENT);
    }

    fn end(&mut self, failure: &Failure) {
        self.link = None;
        self.queued.clear();
        let open = std::mem::take(&mut self.open);
        self.ready.extend(open.into_keys().map(|number| (number, Err(failure.clone()))));
    }

    /// It was asked nothing of which [`Client::replies`] has still to tell.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.ready.is_empty()
    }

    /// What can be read when a reply has come.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.as_ref().map(|link| link.stream.as_fd())
    }

    /// When [`Client::replies`] is to be called at the latest, microseconds of
    /// CLOCK_MONOTONIC.
    pub fn until(&self) -> Option<Moment> {
        if !self.ready.is_empty() {
            return Some(Moment::START);
        }
        let first = self.open.values().min().filter(|_| !self.is_patient);
        let silent = first.map(|first| *first + SILENCE);
        let retry = (!self.queued.is_empty()).then(|| clock::now() + RETRY);
        silent.into_iter().chain(retry).min()
    }

    /// Ask for one thing and wait for the reply, until `until`: then the
    /// child is left to the kernel.
    pub fn ask_until(&mut self, what: &Request, until: Moment) -> Reply {
        let number = self.ask(what);
        self.wait_until(number, until)
    }

    /// Wait for the reply to this question, as [`Client::ask_until`].
    pub fn wait_until(&mut self, number: u64, until: Moment) -> Reply {
        loop {
            let is_late = clock::now() >= until;
            let own = self.replies().into_iter().find(|(of, _)| *of == number);
            if let Some((_, reply)) = own {
                return reply;
            }
            let fds: Vec<_> = self.fd().into_iter().collect();
            let until = self.until().map_or(until, |until| until.min(until));
            if is_late || wait(&fds, until).is_err() {
                self.give_up();
            }
        }
    }

    /// Ask for one thing and wait for the reply, for [`SILENCE`].
    pub fn ask_one(&mut self, request: &Request) -> Reply {
        self.ask_until(request, clock::now() + SILENCE)
    }
}

/// Ask several children at the same time and wait: a reply for each request, in
/// [`SILENCE`] for all of them together.
pub fn ask_each(asked: Vec<(&mut Client<'_>, &[Request])>) -> Vec<Vec<Reply>> {
    let until = clock::now() + SILENCE;
    let mut all: Vec<_> = asked
        .into_iter()
        .map(|(client, requests)| {
            let numbers: Vec<u64> = requests.iter().map(|r| client.ask(r)).collect();
            (client, numbers, BTreeMap::new())
        })
        .collect();
    loop {
        let is_late = clock::now() >= until;
        let mut is_all = true;
        for (client, numbers, replies) in &mut all {
            replies.extend(client.replies());
            if numbers.iter().any(|n| !replies.contains_key(n)) && is_late {
                client.give_up();
                replies.extend(client.replies());
            }
            is_all &= numbers.iter().all(|n| replies.contains_key(n));
        }
        if is_all || is_late {
            break;
        }
        let open = all
            .iter()
            .filter(|(_, numbers, replies)| numbers.iter().any(|n| !replies.contains_key(n)));
        let clients: Vec<&Client<'_>> = open.map(|(client, ..)| &**client).collect();
        let fds: Vec<_> = clients.iter().filter_map(|client| client.fd()).collect();
        let first = clients.iter().filter_map(|client| client.until()).min();
        if wait(&fds, first.map_or(until, |first| first.min(until))).is_err() {
            break;
        }
    }
    let in_order = |(_, numbers, mut replies): (_, Vec<u64>, BTreeMap<u64, Reply>)| {
        let reply = |n| replies.remove(&n).unwrap_or(Err(Failure::SILENT));
        numbers.into_iter().map(reply).collect()
    };
    all.into_iter().map(in_order).collect()
}

/// Until one of these can be read, or until `until`.
pub(super) fn wait(fds: &[BorrowedFd<'_>], until: Moment) -> io::Result<()> {
    let mut fds: Vec<_> = fds.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    match poll(&mut fds, clock::poll_timeout(until)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Why a query was not begun.
enum NotBegun {
    /// Another process is at it: which one, if it can be found.
    ByAnother(Option<OwnProcess>),
    /// There is no child that could do it.
    Failed(io::Error),
}

/// Starts a child that queries `resource`, and holds the lock of that as long as it does. Who
/// cannot have the lock, as who is not root, looks for the child of another query.
fn query(resource: Resource) -> Result<Link, NotBegun> {
    let args = ["--queries".to_owned(), resource.to_string()];
    let other = |known| process::own_process(&worker(&args), known);
    let lock = match Locks::of_queries().and_then(|locks| locks.try_take(&resource.to_string())) {
        Ok(lock) => Some(lock),
        Err(LockError::Busy { owner }) => return Err(NotBegun::ByAnother(other(owner))),
        Err(LockError::Unusable { .. }) => match other(None) {
            None => None,
            other => return Err(NotBegun::ByAnother(other)),
        },
    };
    let start = || {
        let file = lock.as_ref().map(Held::share).transpose()?;
        Link::start(file.as_ref(), true, &args)
    };
    let link = start().map_err(NotBegun::Failed)?;
    if let Some((mut lock, child)) = lock.zip(link.child.as_ref()) {
        lock.set_owner(child.id());
    }
    Ok(link)
}

/// The arguments by which this program is a child.
fn worker(args: &[String]) -> Vec<String> {
    std::iter::once(VERB.to_owned()).chain(args.iter().cloned()).collect()
}

/// A child and the socket to it.
#[derive(Debug)]
struct Link {
    child: Option<Child>,
    stream: UnixStream,
    unread: Vec<u8>,
}

impl Link {
    fn start(lock: Option<&File>, is_mute: bool, args: &[String]) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let lock = lock.map(File::try_clone).transpose()?;
        let child = process::start_self_on(theirs, lock, is_mute, &worker(args))?;
        Ok(Self { child: Some(child), stream: ours, unread: Vec::new() })
    }

    /// See the child to its end: it has nothing to do, and does not hang.
    fn end(mut self) {
        drop(self.stream.shutdown(std::net::Shutdown::Both));
        if let Some(mut child) = self.child.take() {
            // Nobody asks how it has ended.
            drop(child.wait());
        }
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        self.stream.set_nonblocking(false)?;
        self.stream.write_all(format!("{line}\n").as_bytes())
    }

    /// The whole lines that have come, and whether there will be no more.
    fn read(&mut self) -> io::Result<(Vec<String>, bool)> {
        self.stream.set_nonblocking(true)?;
        let mut is_gone = false;
        let mut buffer = [0_u8; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => is_gone = true,
                Ok(n) => {
                    self.unread.extend(buffer.get(..n).unwrap_or_default());
                    continue;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::ConnectionReset => is_gone = true,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
            break;
        }
        let mut lines = Vec::new();
        while let Some(end) = self.unread.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        Ok((lines, is_gone))
    }
}

/// Children that have not ended yet when nobody needed them any more.
static LEFT: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// A child of this process that nobody needed any more has not ended yet.
pub fn is_left(pid: u32) -> bool {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    left.iter().any(|child| child.id() == pid)
}

impl Drop for Link {
    /// The child ends by itself once its parent's end is closed; one that hangs is
    /// left to the kernel.
    fn drop(&mut self) {
        drop(self.stream.shutdown(std::net::Shutdown::Both));
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        left.extend(self.child.take());
        // Those that have ended are collected; nobody asks how.
        left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

#[cfg(test)]
mod tests;
