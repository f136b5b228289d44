#![allow(
    clippy::disallowed_methods,
    reason = "the child's threads may hang: that is what the child is for"
)]

//! The child: does what it is asked for, several requests at a time, a thread
//! each. It holds the lock that its parent gave it as standard output for as long
//! as any of them is at work, and begins nothing more once its parent is gone: then it
//! puts back what that has left at the PF whose child it is.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde::de::IgnoredAny;

use super::perform::perform;
use super::request::{Answer, Numbered, Request};
use super::undo;
use crate::host::Root;
use crate::model::Refusal;
use crate::names::PciAddress;

/// How many requests are worked on at the same time. Most of what binding in
/// parallel gains is there with four to eight, and more would only queue at the
/// firmware (mlx5 registers its auxiliary devices under one mutex).
const AT_ONCE: usize = 8;

/// What was tried with a line that is no request.
pub(super) const UNREADABLE: &str = "parse the request";

/// The child's verb, not shown to users.
pub const VERB: &str = "worker";

/// Who only looks asks all its questions at once. When its child has had nothing to do for so
/// long, it ends, and with it its lock: the parent may have been stopped (SIGSTOP).
const IDLE: Duration = Duration::from_secs(1);

/// What the verb does; `pf` is the PF whose run has started it, and `is_query` is true where who
/// only looks has. It returns when the parent is gone, what was begun to change something is
/// through, and what the run has left is put back, while threads may still be reading: the caller
/// must end the process.
///
/// # Errors
/// Standard input is not the socket that a [`super::Client`] gives its child.
pub fn run(pf: Option<PciAddress>, is_query: bool) -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.set_read_timeout(is_query.then_some(IDLE))?;
    let served = serve(socket, |request| perform(&Root::live(), request));
    if let Some(pf) = pf {
        undo::put_back(&Root::live(), pf);
    }
    served
}

/// What the child's threads share.
struct Queue {
    waiting: VecDeque<Job>,
    idle: usize,
    threads: usize,
    /// Of the threads, those that change something.
    changing: usize,
}

impl Queue {
    /// No request waits, and none is worked on.
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.idle == self.threads && self.changing == 0
    }
}

type Perform = fn(&Request) -> Result<Answer, Refusal>;

/// A request, or why it is none.
type Job = Numbered<Result<Request, Refusal>>;

/// Answer each line of `socket` by one line, until there are no more.
pub(super) fn serve(socket: UnixStream, perform: Perform) -> io::Result<()> {
    let out = Box::leak(Box::new(Mutex::new(socket.try_clone()?)));
    let queue: &'static (Mutex<Queue>, Condvar) = Box::leak(Box::new((
        Mutex::new(Queue { waiting: VecDeque::new(), idle: 0, threads: 0, changing: 0 }),
        Condvar::new(),
    )));
    let mut lines = BufReader::new(socket).lines();
    let end = loop {
        let line = match lines.next() {
            Some(Ok(line)) => line,
            // What a parent leaves behind with answers that it has not read.
            Some(Err(e)) if e.kind() == io::ErrorKind::ConnectionReset => break Ok(()),
            Some(Err(e)) if e.kind() == io::ErrorKind::WouldBlock => {
                let state = queue.0.lock().unwrap_or_else(PoisonError::into_inner);
                if state.is_idle() { break Ok(()) } else { continue }
            }
            Some(Err(e)) => break Err(e),
            None => break Ok(()),
        };
        let job = parse(&line);
        let out: &'static Mutex<UnixStream> = out;
        let mut state = queue.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spawned = if job.what.as_ref().is_ok_and(Request::restores) {
            // Its own thread: the others may all be in probes that hang.
            state.changing += 1;
            let own =
                std::thread::Builder::new().spawn(move || carry_out(queue, out, perform, job));
            state.changing -= usize::from(own.is_err());
            own.map(drop)
        } else {
            state.waiting.push_back(job);
            if state.idle < state.waiting.len() && state.threads < AT_ONCE {
                state.threads += 1;
                std::thread::Builder::new().spawn(move || work(queue, out, perform)).map(drop)
            } else {
                Ok(())
            }
        };
        drop(state);
        if let Err(e) = spawned {
            break Err(e);
        }
        queue.1.notify_one();
    };
    // Nothing more is begun: who asked for it is gone.
    let mut state = queue.0.lock().unwrap_or_else(PoisonError::into_inner);
    state.waiting.clear();
    // The end of the process is a deadly signal to its threads, with which a probe that
    // one of them has begun fails half-way: kthread_create() (kernel/kthread.c) gives up,
    // and mlx5_core is left bound without an RDMA device.
    while state.changing > 0 {
        state = queue.1.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    end
}

fn work(
    queue: &'static (Mutex<Queue>, Condvar),
    out: &'static Mutex<UnixStream>,
    perform: Perform,
) {
    loop {
        let mut state = queue.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.idle += 1;
        let job = loop {
            if let Some(job) = state.waiting.pop_front() {
                break job;
            }
            state = queue.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        state.idle -= 1;
        state.changing += usize::from(job.changes());
        drop(state);
        carry_out(queue, out, perform, job);
    }
}

/// Do what was asked for, and answer. What changes something is counted among
/// [`Queue::changing`] already.
fn carry_out(queue: &(Mutex<Queue>, Condvar), out: &Mutex<UnixStream>, perform: Perform, job: Job) {
    let changes = job.changes();
    let answer = Numbered { number: job.number, what: job.what.and_then(|what| perform(&what)) };
    // Plain values: there is no JSON that they do not make.
    let mut line = serde_json::to_string(&answer).unwrap_or_default();
    line.push('\n');
    if changes {
        queue.0.lock().unwrap_or_else(PoisonError::into_inner).changing -= 1;
        queue.1.notify_all();
    }
    let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
    // A parent that is gone ends the child by the end of its requests.
    drop(out.write_all(line.as_bytes()));
}

impl Job {
    fn changes(&self) -> bool {
        self.what.as_ref().is_ok_and(Request::changes)
    }
}

fn parse(line: &str) -> Job {
    match serde_json::from_str::<Numbered<Request>>(line) {
        Ok(Numbered { number, what }) => Numbered { number, what: Ok(what) },
        Err(e) => {
            let known = serde_json::from_str::<Numbered<IgnoredAny>>(line);
            // No request has number 0.
            let number = known.map_or(0, |known| known.number);
            let refusal =
                Refusal { tried: UNREADABLE.to_owned(), errno: None, said: e.to_string() };
            Numbered { number, what: Err(refusal) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::mpsc::{self, RecvTimeoutError};

    use super::*;

    /// How many requests have begun, and whether they may end.
    static AT_WORK: (Mutex<(u32, bool)>, Condvar) = (Mutex::new((0, false)), Condvar::new());

    fn hang(_: &Request) -> Result<Answer, Refusal> {
        let mut state = AT_WORK.0.lock().expect("lock");
        state.0 += 1;
        AT_WORK.1.notify_all();
        drop(AT_WORK.1.wait_while(state, |state| !state.1).expect("lock"));
        Ok(Answer::Done)
    }

    /// A child whose parent goes once a request has begun.
    fn orphan(request: &Request, begun: u32) -> mpsc::Receiver<()> {
        let (mut ours, theirs) = UnixStream::pair().expect("sockets");
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            serve(theirs, hang).expect("served");
            ended.send(()).expect("heard");
        });
        // The parent goes with an answer to this that it has not read.
        ours.write_all(b"no request\n").expect("asked");
        ours.read_exact(&mut [0]).expect("the answer's first byte");
        let line = serde_json::to_string(&Numbered { number: 1, what: request }).expect("JSON");
        writeln!(ours, "{line}").expect("asked");
        let state = AT_WORK.0.lock().expect("lock");
        drop(AT_WORK.1.wait_while(state, |state| state.0 < begun).expect("lock"));
        end
    }

    #[test]
    fn what_was_begun_to_change_something_outlives_the_parent_and_what_reads_does_not() {
        let pci = "0000:01:00.0".parse().expect("address");
        let soon = Duration::from_secs(20);
        let reads = orphan(&Request::Override(pci), 1);
        assert_eq!(reads.recv_timeout(soon), Ok(()));
        let bind = Request::Bind {
            pci,
            driver: "mlx5_core".to_owned(),
            before: String::new(),
            rdma: None,
        };
        let changes = orphan(&Request::Each(vec![Request::Override(pci), bind]), 2);
        let early = changes.recv_timeout(Duration::from_millis(300));
        assert_eq!(early, Err(RecvTimeoutError::Timeout));
        AT_WORK.0.lock().expect("lock").1 = true;
        AT_WORK.1.notify_all();
        assert_eq!(changes.recv_timeout(soon), Ok(()));
    }

    #[test]
    fn a_child_of_a_look_ends_when_it_has_nothing_to_do_although_its_parent_is_there() {
        static GATE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
        fn hang(_: &Request) -> Result<Answer, Refusal> {
            let open = GATE.0.lock().expect("lock");
            drop(GATE.1.wait_while(open, |open| !*open).expect("lock"));
            Ok(Answer::Done)
        }
        let (mut ours, theirs) = UnixStream::pair().expect("sockets");
        theirs.set_read_timeout(Some(Duration::from_millis(10))).expect("timeout");
        let line = serde_json::to_string(&Numbered { number: 1, what: Request::Addresses });
        writeln!(ours, "{}", line.expect("JSON")).expect("asked");
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            serve(theirs, hang).expect("served");
            ended.send(()).expect("heard");
        });
        let early = end.recv_timeout(Duration::from_millis(300));
        assert_eq!(early, Err(RecvTimeoutError::Timeout), "a question is open");
        *GATE.0.lock().expect("lock") = true;
        GATE.1.notify_all();
        let mut answer = String::new();
        BufReader::new(&ours).read_line(&mut answer).expect("an answer");
        assert_eq!(end.recv_timeout(Duration::from_secs(20)), Ok(()));
    }

    #[test]
    fn what_was_changed_is_put_back_although_every_thread_hangs() {
        static GATE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
        fn hang_in_probes(request: &Request) -> Result<Answer, Refusal> {
            if !request.restores() {
                let open = GATE.0.lock().expect("lock");
                drop(GATE.1.wait_while(open, |open| !*open).expect("lock"));
            }
            Ok(Answer::Done)
        }
        let (mut ours, theirs) = UnixStream::pair().expect("sockets");
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            serve(theirs, hang_in_probes).expect("served");
            ended.send(()).expect("heard");
        });
        let bind = Request::Bind {
            pci: "0000:01:00.1".parse().expect("address"),
            driver: "mlx5_core".to_owned(),
            before: String::new(),
            rdma: None,
        };
        let back = Request::Restore { path: String::new(), value: "1".to_owned() };
        let binds = vec![bind; AT_ONCE + 1];
        let requests = binds.into_iter().chain([Request::Each(vec![back])]);
        for (number, what) in (1..).zip(requests) {
            let line = serde_json::to_string(&Numbered { number, what }).expect("JSON");
            writeln!(ours, "{line}").expect("asked");
        }
        ours.set_read_timeout(Some(Duration::from_secs(20))).expect("timeout");
        let mut answer = String::new();
        BufReader::new(&ours).read_line(&mut answer).expect("an answer");
        assert!(answer.starts_with(&format!("{{\"number\":{}", AT_ONCE + 2)), "{answer}");
        drop(ours);
        let early = end.recv_timeout(Duration::from_millis(300));
        assert_eq!(early, Err(RecvTimeoutError::Timeout), "probes are under way");
        *GATE.0.lock().expect("lock") = true;
        GATE.1.notify_all();
        assert_eq!(end.recv_timeout(Duration::from_secs(20)), Ok(()));
    }
}
