#![allow(clippy::disallowed_methods, reason = "locks are files of our own")]

//! Turns at what the host has little of: of all runs of ibprov, a few have one at a time.
//!
//! A turn is a lock of one of so many files, so a kill gives it back. The kernel wakes one
//! of those who wait for it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use nix::libc::O_NOFOLLOW;

use super::{clock, state};

/// How long a turn is waited for, microseconds. Each is some milliseconds long.
pub(super) const PATIENCE_USEC: u64 = 20_000_000;

/// What there are turns at.
#[derive(Debug)]
pub(super) struct Turns {
    /// The directory of their files, below that of all state.
    dir: &'static str,
    number: u32,
}

/// At the system bus. `dbus-daemon` lets each user have 256 connections
/// (`max_connections_per_user`, `system.conf`), and where hundreds of interfaces come at once,
/// as many instances would leave none to root's other programs.
pub(super) const BUS: Turns = Turns { dir: "bus", number: 16 };

/// At the events of links. The kernel makes a copy of each for all who listen, whatever they
/// let through, while it holds the RTNL lock (`do_one_broadcast()`, `net/netlink/af_netlink.c`):
/// of hundreds of interfaces each would cost what all do.
pub(super) const LINKS: Turns = Turns { dir: "links", number: 16 };

/// A turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn(#[allow(dead_code, reason = "held")] File);

/// All turns were taken for the whole time.
#[derive(Debug)]
pub(super) struct AllTaken;

impl Turns {
    /// Take a turn, at the latest at `until_usec` of CLOCK_MONOTONIC; with 0 without waiting.
    /// None is needed where there can be no locks: who is not root is limited for itself.
    pub(super) fn take(&self, until_usec: u64) -> Result<Option<Turn>, AllTaken> {
        let dir = Path::new(state::RUN_DIR).join(self.dir);
        match state::directory().and_then(|()| state::own_directory(&dir, 0o700)) {
            Ok(()) => take_in(&dir, self.number, until_usec),
            Err(e) => {
                tracing::debug!(cause = %e, "{}: {e}", dir.display());
                Ok(None)
            }
        }
    }
}

fn take_in(dir: &Path, turns: u32, until_usec: u64) -> Result<Option<Turn>, AllTaken> {
    // Who waits, waits for one: they spread.
    let first = std::process::id() % turns;
    let file = |n: u32| open(dir.join(((first + n) % turns).to_string()));
    for n in 0..turns {
        let Ok(file) = file(n) else { return Ok(None) };
        if file.try_lock().is_ok() {
            return Ok(Some(Turn(file)));
        }
    }
    if until_usec == 0 {
        return Err(AllTaken);
    }
    let Ok(file) = file(0) else { return Ok(None) };
    let (tell, told) = channel();
    // A wait for a lock has no deadline of its own. The thread of one that was given up
    // gives the lock back when it gets it, or ends with us.
    let wait = move || {
        if file.lock().is_ok() {
            drop(tell.send(file));
        }
    };
    if std::thread::Builder::new().spawn(wait).is_err() {
        return Ok(None);
    }
    let left = until_usec.saturating_sub(clock::monotonic_usec());
    let taken = told.recv_timeout(Duration::from_micros(left));
    taken.map(|file| Some(Turn(file))).map_err(|_| AllTaken)
}

fn open(path: PathBuf) -> io::Result<File> {
    let how = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(O_NOFOLLOW)
        .open(&path);
    if how.is_err() {
        // What is there and is no file is nobody's lock.
        drop(fs::remove_file(path));
    }
    how
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_for_one_and_comes_back() {
        let dir = tempfile::tempdir().expect("directory");
        let take = |millis: u64| take_in(dir.path(), 2, clock::monotonic_usec() + 1000 * millis);
        let first = take(0).expect("free").expect("locks");
        let _second = take(0).expect("free").expect("locks");
        assert!(take(50).is_err(), "two are all there are");
        // The one that is waited for is that of this process's number.
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| take(20_000).is_ok());
            let (_none, never) = channel::<()>();
            let _ = never.recv_timeout(Duration::from_millis(100));
            drop(first);
            assert!(waiter.join().expect("waiter"));
        });
    }
}
