#![allow(clippy::disallowed_methods, reason = "the asking is done by a process of our own")]

//! A port's state, asked for in a child process.
//!
//! `ports/N/state` and its neighbours ask the firmware (`ib_query_port()`), so
//! who reads them on a dead card sleeps uninterruptibly, up to a minute for each
//! command. The child lives as long as its port is of interest: one line to
//! its standard input is a question, one line of its standard output the
//! answer. It ends when its standard input does.

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::host::{Root, clock, netlink};
use crate::names::{PciAddress, PortNumber, RdmaName};
use crate::observe::Look;
use crate::observe::link::{self, PortAnswer};

/// The verb of the child, not shown to users.
pub const VERB: &str = "read-port";

/// Asks for the state of one port, again and again, without ever waiting.
#[derive(Debug)]
pub struct PortReader {
    child: Child,
    questions: ChildStdin,
    answers: ChildStdout,
    received: Vec<u8>,
    /// When the question that has no answer yet was asked, microseconds of
    /// CLOCK_MONOTONIC.
    asked_usec: Option<u64>,
}

impl PortReader {
    /// For port `port` of `device` at the function `pci`.
    ///
    /// # Errors
    /// The child cannot be started.
    pub fn start(pci: PciAddress, device: &RdmaName, port: PortNumber) -> io::Result<Self> {
        // The program itself, whatever became of the file it was started from.
        let mut child = Command::new("/proc/self/exe")
            .args([VERB, &pci.to_string(), device.as_str(), &port.to_string()])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a child without pipes"));
        };
        fcntl(&answers, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(io::Error::from)?;
        Ok(Self { child, questions, answers, received: Vec::new(), asked_usec: None })
    }

    /// Ask, unless the last question is not answered yet.
    ///
    /// # Errors
    /// The child is gone.
    pub fn ask(&mut self) -> io::Result<()> {
        if self.asked_usec.is_none() {
            self.questions.write_all(b"\n")?;
            self.asked_usec = Some(clock::monotonic_usec());
        }
        Ok(())
    }

    /// When the question that waits for its answer was asked.
    #[must_use]
    pub const fn waits_since(&self) -> Option<u64> {
        self.asked_usec
    }

    /// The answer, if it has come.
    ///
    /// # Errors
    /// The child is gone, or answers what is no answer.
    pub fn answer(&mut self) -> io::Result<Option<PortAnswer>> {
        let mut buffer = [0_u8; 1024];
        loop {
            match self.answers.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.received.extend(buffer.get(..n).unwrap_or_default()),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let Some(end) = self.received.iter().position(|b| *b == b'\n') else { return Ok(None) };
        let line: Vec<u8> = self.received.drain(..=end).collect();
        self.asked_usec = None;
        serde_json::from_slice(&line).map(Some).map_err(io::Error::other)
    }
}

impl AsFd for PortReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.answers.as_fd()
    }
}

impl Drop for PortReader {
    fn drop(&mut self) {
        // One that sleeps uninterruptibly ends when the kernel lets it; it is
        // not waited for.
        drop(self.child.kill());
        drop(self.child.try_wait());
    }
}

/// The child's side: answers each line of standard input until there are no
/// more.
///
/// # Errors
/// A pipe fails.
pub fn serve(pci: PciAddress, device: &RdmaName, port: PortNumber) -> io::Result<()> {
    let root = Root::live();
    let mut out = io::stdout().lock();
    for question in io::stdin().lock().lines() {
        question?;
        let answer = read(&root, pci, device, port);
        serde_json::to_writer(&mut out, &answer)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

fn read(root: &Root, pci: PciAddress, device: &RdmaName, port: PortNumber) -> PortAnswer {
    let mut look = Look::new(root);
    let link = link::link(&mut look, pci, device, port);
    // Only a port that is not up may have been told so.
    let is_active = link.state.as_deref() == Some("ACTIVE");
    let place = if is_active { None } else { link::policy_place(&mut look, pci) };
    // The policy only explains why a port is not up: where it cannot be read, the
    // port is told without it.
    let policy = place.and_then(|place| {
        let by_file = root.attribute(&place.file).ok();
        by_file.or_else(|| {
            let of_pf = netlink::administered_vfs().ok()?.into_iter();
            let mut vfs = of_pf
                .filter(|(ifindex, _)| place.pf_ifindexes.contains(ifindex))
                .flat_map(|(_, vfs)| vfs);
            vfs.find(|vf| vf.index == place.index)?.policy
        })
    });
    PortAnswer { link, policy }
}
