#![allow(
    clippy::disallowed_methods,
    reason = "the child's threads may hang: that is what the child is for"
)]

//! A child process that does what may hang: writes to sysfs that probe a
//! driver, reads that ask firmware. One per PF; several requests at a time, a
//! thread of the child each. It holds the PF's lock for as long as any of them
//! is at work, and begins nothing more once its parent is gone.
//!
//! What is asked and answered is a line of text each way; what it means is
//! decided elsewhere.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::host::clock;
use crate::host::lock::Held;

/// The parent's end.
#[derive(Debug)]
pub struct Hand {
    child: Child,
    stream: UnixStream,
    unread: Vec<u8>,
}

/// What has come from the child.
#[derive(Debug, Default)]
pub struct Said {
    /// Whole lines, without their line breaks.
    pub lines: Vec<String>,
    /// The child is gone: there will be no more.
    pub gone: bool,
}

impl Hand {
    /// Start this program again, as `ibprov VERB`. The child holds `lock`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(verb: &str, lock: Option<&Held>) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        // The child's standard output is the lock: it prints nothing.
        let lock = match lock {
            Some(held) => Stdio::from(held.share()?),
            None => Stdio::null(),
        };
        let child = Command::new("/proc/self/exe")
            .arg(verb)
            .env_clear()
            .env("LC_ALL", "C")
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(lock)
            .spawn()?;
        Ok(Self { child, stream: ours, unread: Vec::new() })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ask for one thing. The child takes requests at once, whatever it is
    /// busy with, so this does not wait.
    ///
    /// # Errors
    /// The child is gone.
    pub fn ask(&mut self, request: &str) -> io::Result<()> {
        self.stream.set_nonblocking(false)?;
        self.stream.write_all(format!("{request}\n").as_bytes())
    }

    /// Wait until it has answered something or is gone; false at `until_usec`
    /// of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// poll fails.
    pub fn wait(&self, until_usec: u64) -> io::Result<bool> {
        loop {
            let left = until_usec.saturating_sub(clock::monotonic_usec());
            let millis = i32::try_from(left.div_ceil(1000)).unwrap_or(i32::MAX);
            let timeout = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)], timeout) {
                Ok(ready) => return Ok(ready > 0),
                Err(nix::errno::Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// What it has answered since the last call; does not wait.
    ///
    /// # Errors
    /// The socket cannot be read.
    pub fn said(&mut self) -> io::Result<Said> {
        self.stream.set_nonblocking(true)?;
        let mut said = Said::default();
        let mut buffer = [0_u8; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    said.gone = true;
                    break;
                }
                Ok(n) => self.unread.extend(buffer.get(..n).unwrap_or_default()),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::ConnectionReset => {
                    said.gone = true;
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        while let Some(end) = self.unread.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            said.lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        Ok(said)
    }
}

impl AsFd for Hand {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Drop for Hand {
    /// The child ends by itself once its parent's end is closed; one that
    /// hangs is left to the kernel.
    fn drop(&mut self) {
        // An idle child ends now; it is collected if it has.
        drop(self.stream.shutdown(std::net::Shutdown::Both));
        drop(self.child.try_wait());
    }
}

/// What the child's threads share.
struct Queue {
    waiting: VecDeque<String>,
    idle: usize,
    threads: usize,
}

/// The child: answer each line of standard input by one line on the same
/// socket, at most `at_once` at a time. Returns when the parent is gone, while
/// threads may still be at work: the caller must end the process.
///
/// # Errors
/// Standard input is no socket.
pub fn serve(at_once: usize, answer: fn(&str) -> String) -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let out = Box::leak(Box::new(Mutex::new(socket.try_clone()?)));
    let queue: &'static (Mutex<Queue>, Condvar) = Box::leak(Box::new((
        Mutex::new(Queue { waiting: VecDeque::new(), idle: 0, threads: 0 }),
        Condvar::new(),
    )));
    for line in BufReader::new(socket).lines() {
        let line = line?;
        let mut state = queue.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting.push_back(line);
        if state.idle < state.waiting.len() && state.threads < at_once {
            state.threads += 1;
            let out: &'static Mutex<UnixStream> = out;
            std::thread::Builder::new().stack_size(256 * 1024).spawn(move || {
                work(queue, out, answer);
            })?;
        }
        drop(state);
        queue.1.notify_one();
    }
    // Nothing more is begun: who asked for it is gone.
    queue.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.clear();
    Ok(())
}

fn work(
    queue: &'static (Mutex<Queue>, Condvar),
    out: &'static Mutex<UnixStream>,
    answer: fn(&str) -> String,
) {
    loop {
        let mut state = queue.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.idle += 1;
        let request = loop {
            if let Some(request) = state.waiting.pop_front() {
                break request;
            }
            state = queue.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        state.idle -= 1;
        drop(state);
        let line = format!("{}\n", answer(&request));
        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
        // A parent that is gone ends the child by the end of its requests.
        drop(out.write_all(line.as_bytes()));
    }
}
