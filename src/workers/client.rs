//! The parent's side: one child, and what it was asked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};

use super::child::VERB;
use super::perform::perform;
use super::request::{Answer, Numbered, Refusal, Request};
use crate::host::lock::Held;
use crate::host::{Root, answer, clock, process};
use crate::names::PciAddress;

/// Who has not answered for so long, microseconds, is not waited for by those who
/// only look.
pub const SILENCE_USEC: u64 = 5_000_000;

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
    /// There was no answer in [`SILENCE_USEC`].
    #[error("did not answer within {} s", SILENCE_USEC / 1_000_000)]
    Silent,
}

/// Asks a child, which is started with the first question, and anew with the next
/// one after it is gone or was silent for too long. For a copied tree there is no
/// child: what is asked of one is looked up at once, in this process.
///
/// A client is for one HCA: of a card that hangs a child works on eight requests at
/// most, and is left to the kernel as a whole. The answers of another HCA come from
/// another child.
#[derive(Debug)]
pub struct Client<'a> {
    copy: Option<&'a Root>,
    /// It waits for its answers as long as it takes.
    is_patient: bool,
    lock: Option<File>,
    /// The PF at which the child puts back what this process leaves.
    pf: Option<PciAddress>,
    link: Option<Link>,
    last: u64,
    /// Since when each question waits, microseconds of CLOCK_MONOTONIC.
    open: BTreeMap<u64, u64>,
    ready: Vec<(u64, Reply)>,
}

impl<'a> Client<'a> {
    /// For the host below `root`.
    pub fn new(root: &'a Root) -> Self {
        Self { copy: (!root.is_live()).then_some(root), ..Self::live() }
    }

    pub const fn live() -> Self {
        Self {
            copy: None,
            is_patient: false,
            lock: None,
            pf: None,
            link: None,
            last: 0,
            open: BTreeMap::new(),
            ready: Vec::new(),
        }
    }

    /// One whose child is whoever has the other end of `stream`.
    #[cfg(test)]
    pub(crate) fn over(stream: UnixStream) -> Self {
        Self { link: Some(Link { child: None, stream, unread: Vec::new() }), ..Self::live() }
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
    pub fn rest(&mut self) {
        if self.open.is_empty()
            && let Some(link) = self.link.take()
        {
            link.end();
        }
    }

    fn link(&mut self) -> io::Result<&mut Link> {
        Ok(match &mut self.link {
            Some(link) => link,
            none => none.insert(Link::start(self.lock.as_ref(), self.pf)?),
        })
    }

    /// The child's process id, while there is one.
    pub fn pid(&self) -> Option<u32> {
        Some(self.link.as_ref()?.child.as_ref()?.id())
    }

    /// Ask for one thing; the number is that of its reply. The child takes requests
    /// at once, whatever it is busy with, so this does not wait.
    pub fn ask(&mut self, what: &Request) -> u64 {
        self.last += 1;
        let number = self.last;
        if let Some(root) = self.copy {
            self.ready.push((number, perform(root, what).map_err(Failure::Refused)));
            return number;
        }
        self.open.insert(number, clock::monotonic_usec());
        let line = serde_json::to_string(&Numbered { number, what }).map_err(io::Error::from);
        if let Err(e) = line.and_then(|line| self.link()?.write(&line)) {
            self.lose(&answer(&e));
        }
        number
    }

    /// What has become of questions since the last call. Does not wait.
    pub fn replies(&mut self) -> Vec<(u64, Reply)> {
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
        let now = clock::monotonic_usec();
        if !self.is_patient && self.open.values().any(|since| since + SILENCE_USEC <= now) {
            self.give_up();
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
        self.end(&Failure::Silent);
    }

    fn end(&mut self, failure: &Failure) {
        self.link = None;
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
    pub fn until_usec(&self) -> Option<u64> {
        if !self.ready.is_empty() {
            return Some(0);
        }
        let first = self.open.values().min().filter(|_| !self.is_patient)?;
        Some(first + SILENCE_USEC)
    }

    /// Since when a question waits for its reply, microseconds of CLOCK_MONOTONIC.
    pub fn waits_since(&self, number: u64) -> Option<u64> {
        self.open.get(&number).copied()
    }

    /// Ask for one thing and wait for the reply, until `until_usec` of CLOCK_MONOTONIC: then the
    /// child is left to the kernel.
    pub fn ask_until(&mut self, what: &Request, until_usec: u64) -> Reply {
        let number = self.ask(what);
        loop {
            let is_late = clock::monotonic_usec() >= until_usec;
            let own = self.replies().into_iter().find(|(of, _)| *of == number);
            if let Some((_, reply)) = own {
                return reply;
            }
            let fds: Vec<_> = self.fd().into_iter().collect();
            if is_late || wait(&fds, until_usec).is_err() {
                self.give_up();
            }
        }
    }

    /// Ask for all of these and wait: a reply for each, in [`SILENCE_USEC`].
    pub fn ask_all(&mut self, requests: &[Request]) -> Vec<Reply> {
        ask_each(vec![(self, requests)]).pop().unwrap_or_default()
    }
}

/// Ask several children at the same time and wait: a reply for each request, in
/// [`SILENCE_USEC`] for all of them together.
pub fn ask_each(asked: Vec<(&mut Client<'_>, &[Request])>) -> Vec<Vec<Reply>> {
    let until = clock::monotonic_usec() + SILENCE_USEC;
    let mut all: Vec<_> = asked
        .into_iter()
        .map(|(client, requests)| {
            let numbers: Vec<u64> = requests.iter().map(|r| client.ask(r)).collect();
            (client, numbers, BTreeMap::new())
        })
        .collect();
    loop {
        let is_late = clock::monotonic_usec() >= until;
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
        let fds: Vec<_> = open.filter_map(|(client, ..)| client.fd()).collect();
        if wait(&fds, until).is_err() {
            break;
        }
    }
    let in_order = |(_, numbers, mut replies): (_, Vec<u64>, BTreeMap<u64, Reply>)| {
        let reply = |n| replies.remove(&n).unwrap_or(Err(Failure::Silent));
        numbers.into_iter().map(reply).collect()
    };
    all.into_iter().map(in_order).collect()
}

/// Until one of these can be read, or until `until_usec` of CLOCK_MONOTONIC.
pub(super) fn wait(fds: &[BorrowedFd<'_>], until_usec: u64) -> io::Result<()> {
    let mut fds: Vec<_> = fds.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    match poll(&mut fds, clock::poll_timeout(until_usec)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// A child and the socket to it.
#[derive(Debug)]
struct Link {
    child: Option<Child>,
    stream: UnixStream,
    unread: Vec<u8>,
}

impl Link {
    fn start(lock: Option<&File>, pf: Option<PciAddress>) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let lock = lock.map(File::try_clone).transpose()?;
        let mut args = vec![VERB.to_owned()];
        args.extend(pf.map(|pf| pf.to_string()));
        let child = process::start_self_on(theirs, lock, &args)?;
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
