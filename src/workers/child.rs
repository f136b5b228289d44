#![allow(
    clippy::disallowed_methods,
    reason = "the child's threads may hang: that is what the child is for"
)]

//! The child: does what it is asked for, several requests at a time, a thread
//! each. It holds the lock that its parent gave it as standard output for as long
//! as any of them is at work, and begins nothing more once its parent is gone.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, PoisonError};

use serde::de::IgnoredAny;

use super::perform::perform;
use super::request::{Answer, Numbered, Refusal, Request, Tried};
use crate::host::Root;

/// How many requests are worked on at the same time. Most of what binding in
/// parallel gains is there with four to eight, and more would only queue at the
/// firmware (mlx5 registers its auxiliary devices under one mutex).
const AT_ONCE: usize = 8;

/// The child's verb, not shown to users.
pub const VERB: &str = "worker";

/// What the verb does. It returns when the parent is gone, while threads may still
/// be at work: the caller must end the process.
///
/// # Errors
/// Standard input is not the socket that a [`super::Client`] gives its child.
pub fn run() -> io::Result<()> {
    serve(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?), |request| {
        perform(&Root::live(), request)
    })
}

/// What the child's threads share.
struct Queue {
    waiting: VecDeque<String>,
    idle: usize,
    threads: usize,
}

type Perform = fn(&Request) -> Result<Answer, Refusal>;

/// Answer each line of `socket` by one line, until there are no more.
pub(super) fn serve(socket: UnixStream, perform: Perform) -> io::Result<()> {
    let out = Box::leak(Box::new(Mutex::new(socket.try_clone()?)));
    let queue: &'static (Mutex<Queue>, Condvar) = Box::leak(Box::new((
        Mutex::new(Queue { waiting: VecDeque::new(), idle: 0, threads: 0 }),
        Condvar::new(),
    )));
    for line in BufReader::new(socket).lines() {
        let line = line?;
        let mut state = queue.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting.push_back(line);
        if state.idle < state.waiting.len() && state.threads < AT_ONCE {
            state.threads += 1;
            let out: &'static Mutex<UnixStream> = out;
            std::thread::Builder::new().spawn(move || work(queue, out, perform))?;
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
    perform: Perform,
) {
    loop {
        let mut state = queue.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.idle += 1;
        let line = loop {
            if let Some(line) = state.waiting.pop_front() {
                break line;
            }
            state = queue.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        state.idle -= 1;
        drop(state);
        // Plain values: there is no JSON that they do not make.
        let mut line = serde_json::to_string(&answer(&line, perform)).unwrap_or_default();
        line.push('\n');
        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
        // A parent that is gone ends the child by the end of its requests.
        drop(out.write_all(line.as_bytes()));
    }
}

fn answer(line: &str, perform: Perform) -> Numbered<Result<Answer, Refusal>> {
    match serde_json::from_str::<Numbered<Request>>(line) {
        Ok(Numbered { number, what }) => Numbered { number, what: perform(&what) },
        Err(e) => {
            let known = serde_json::from_str::<Numbered<IgnoredAny>>(line);
            // No request has number 0.
            let number = known.map_or(0, |known| known.number);
            let refusal = Refusal { tried: Tried::Request, errno: None, said: e.to_string() };
            Numbered { number, what: Err(refusal) }
        }
    }
}
