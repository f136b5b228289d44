//! What waits for the kernel's RTNL lock, which a driver holds for as long as its dead
//! adapter likes: a child is asked for it, so that a run for the interface of another adapter
//! comes to its end.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::host::lock::Held;
use crate::host::{Root, clock};
use crate::names::{IfName, Moment, Resource};
use crate::observe::ipoib::Interface;
use crate::workers::client::is_left;
use crate::workers::{Answer, Client, Failure, Request, SILENCE};

/// Why something that needs the RTNL lock was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotDone {
    /// The kernel did not answer for so long: somebody else has the lock.
    #[error(
        "the kernel has not answered within {} s: a process holds the RTNL lock, without which no network interface can be set. Find the process that hangs (an `ip`, ifup or modprobe in state D), see `cat /proc/PID/stack` and dmesg",
        .0.as_secs()
    )]
    Held(Duration),
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The child of this process that has waited for the lock in vain, and for how long.
static FOUND_HELD: Mutex<Option<(u32, Duration)>> = Mutex::new(None);

/// `child` has waited for the lock for so long, and is still waiting.
fn find_held(child: u32, waited: Duration) {
    *FOUND_HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some((child, waited));
}

/// For how long another run of this process has waited for the lock whose child still
/// does: so many P_Key children can come that one after the other would wait until its own
/// deadline.
fn found_held() -> Option<Duration> {
    let found = *FOUND_HELD.lock().unwrap_or_else(PoisonError::into_inner);
    found.filter(|(child, _)| is_left(*child)).map(|(_, waited)| waited)
}

/// The child that is asked, and until when.
#[derive(Debug)]
pub struct Rtnl {
    child: Client<'static>,
    deadline: Moment,
    /// It was waited for in vain for so long: it is not waited for again.
    held: Option<Duration>,
    is_look: bool,
}

impl Rtnl {
    /// Wait for an answer until `deadline`, but for
    /// [`SILENCE`] at least: that the time was spent otherwise does not mean that somebody
    /// holds the lock.
    pub fn until(deadline: Moment) -> Self {
        Self { child: Client::live().patient(), deadline, held: None, is_look: false }
    }

    /// For who only looks: wait for [`SILENCE`], and not once more where the lock was found
    /// held.
    pub fn to_look(is_held: bool) -> Self {
        let held = is_held.then_some(SILENCE);
        let child = Client::live().querying(Resource::Rtnl);
        Self { child, held, is_look: true, ..Self::until(Moment::START) }
    }

    /// Who is asked what RDMA netlink tells: it can hang while the RTNL lock is free.
    pub fn rdma_netlink(&self) -> Client<'static> {
        match self.is_look {
            true => Client::live().querying(Resource::RdmaNetlink),
            false => Client::live(),
        }
    }

    /// What was begun holds `lock` until it is through, whatever becomes of us.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn hold(&mut self, lock: &Held) -> io::Result<()> {
        self.child.hold(lock)
    }

    /// The lock was waited for in vain.
    pub const fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Wait until no other interface of this process is being set: each needs the lock. Who gets
    /// its turn at the deadline came after one that had waited for the lock in vain.
    pub fn turn(&mut self) -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        if let Ok(turn) = TURN.try_lock() {
            return turn;
        }
        let began = clock::now();
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        self.held = (now >= self.deadline).then(|| now.since(began));
        turn
    }

    /// End the child, before anything else is waited for; the next question starts another one.
    pub fn disconnect(&mut self) {
        self.child.disconnect();
    }

    /// Ask for one thing and wait for the answer.
    ///
    /// # Errors
    /// It was not done.
    pub fn ask(&mut self, what: &Request) -> Result<Answer, NotDone> {
        self.held = self.held.or_else(found_held);
        if let Some(waited) = self.held {
            return Err(NotDone::Held(waited));
        }
        let began = clock::now();
        let until = self.deadline.max(began + SILENCE);
        let number = self.child.ask(what);
        let child = self.child.pid();
        self.child.wait_until(number, until).map_err(|failure| match failure {
            Failure::Silent(_) => {
                let waited = clock::now().since(began);
                self.held = Some(waited);
                if let Some(child) = child {
                    find_held(child, waited);
                }
                NotDone::Held(waited)
            }
            failure => failure.into(),
        })
    }

    /// Fill in what only netlink tells of a P_Key child, or say in `problems`, once, why that
    /// cannot be read.
    pub fn complete_or_tell(
        &mut self,
        root: &Root,
        interface: &mut Interface,
        problems: &mut Vec<String>,
    ) {
        if let Err(e) = self.complete(root, interface) {
            let problem = format!("the mode of {} cannot be read: {e}", interface.name);
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }

    /// Fill in what only netlink tells of a P_Key child.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn complete(&mut self, root: &Root, interface: &mut Interface) -> Result<(), NotDone> {
        if !root.is_live() || interface.mode.is_some() {
            return Ok(());
        }
        match self.ask(&Request::IpoibSettings(interface.ifindex))? {
            Answer::IpoibSettings { mode, umcast } => {
                (interface.mode, interface.umcast) = (mode, umcast);
                Ok(())
            }
            other => Err(Failure::of(Ok(other)).into()),
        }
    }

    /// The netdev is up and has carrier.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn carrier(&mut self, name: &IfName) -> Result<bool, NotDone> {
        match self.ask(&Request::Carrier(name.clone()))? {
            Answer::Carrier(carrier) => Ok(carrier),
            other => Err(Failure::of(Ok(other)).into()),
        }
    }

    /// The netdev with this index has an address that a peer can use.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn has_address(&mut self, ifindex: u32) -> Result<bool, NotDone> {
        match self.ask(&Request::GlobalAddresses)? {
            Answer::GlobalAddresses(all) => Ok(all.iter().any(|(of, ..)| *of == ifindex)),
            other => Err(Failure::of(Ok(other)).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::process::Command;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::*;

    #[test]
    fn who_comes_while_a_child_of_this_process_waits_for_the_lock_does_not_wait_for_it_too() {
        let child = Command::new("sleep").arg("600").spawn().expect("sleep");
        let pid = child.id();
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        drop(Client::over_child(ours, child));
        find_held(pid, Duration::from_micros(77));
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let over =
            |stream| Rtnl { child: Client::over(stream).patient(), ..Rtnl::until(Moment::START) };
        let mut later = over(ours);
        assert_eq!(later.ask(&Request::Addresses), Err(NotDone::Held(Duration::from_micros(77))));
        assert!(later.is_held());
        drop(theirs);
        // The lock is free again: who asks has an answer, here that of a child that is gone.
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM).expect("kill");
        while is_left(pid) {
            std::thread::yield_now();
        }
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        drop(theirs);
        assert!(matches!(
            over(ours).ask(&Request::Addresses),
            Err(NotDone::Failed(Failure::NoChild(_)))
        ));
    }
}
