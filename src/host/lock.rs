#![allow(clippy::disallowed_methods, reason = "locks are files of our own")]

//! One lock file per object, `/run/ibprov/lock/NAME`, holding its owner's pid, and per what is
//! queried by who only looks, `/run/ibprov/queries/NAME`. flock(2)
//! asks for no right to write: who can open such a file can hold its lock. So nobody but
//! root gets into the directory, or may open a file in it.
//!
//! A child that does the work inherits the lock as its standard input, so the
//! lock lives as long as the work, whatever becomes of ibprov. The release is
//! an event: the last close of a file opened for writing (IN_CLOSE_WRITE). But it
//! comes before the release ([`RETRY`]).

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::libc::{ELOOP, O_NOFOLLOW, O_NONBLOCK};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use super::{clock, state};
use crate::names::Moment;

/// The kernel tells of the close of a file and then drops its lock (`__fput()`,
/// fs/file_table.c: `fsnotify_close()`, `locks_remove_file()`). Who tries the lock in
/// between finds it held, and hears nothing more: who waits for a lock tries it this
/// often besides.
pub const RETRY: Duration = Duration::from_millis(100);

#[derive(Debug, Clone)]
pub struct Locks {
    dir: PathBuf,
}

/// A lock (`flock(2)`), held until it and every child it was given to are gone.
#[derive(Debug)]
pub struct Held(File);

/// Why a lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("held by process {}", owner.map_or_else(|| "unknown".to_owned(), |p| p.to_string()))]
    Busy {
        /// The pid written in it.
        owner: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error("cannot use the lock {path}: {}", super::answer(source))]
    Unusable { path: String, source: io::Error },
}

impl Locks {
    /// The locks of the running system. The directory is made if it can be.
    ///
    /// # Errors
    /// The directory can be neither found nor made, or is not root's.
    pub fn in_run() -> Result<Self, LockError> {
        Self::below_run("lock")
    }

    /// Those of what is queried by who only looks: what changes something has none of them.
    ///
    /// # Errors
    /// As [`Self::in_run`].
    pub fn of_queries() -> Result<Self, LockError> {
        Self::below_run("queries")
    }

    fn below_run(name: &str) -> Result<Self, LockError> {
        let path = state::RUN_DIR.to_owned();
        state::directory().map_err(|source| LockError::Unusable { path, source })?;
        Self::at(PathBuf::from(state::RUN_DIR).join(name))
    }

    fn at(dir: PathBuf) -> Result<Self, LockError> {
        match state::own_directory(&dir, 0o700) {
            Ok(()) => Ok(Self { dir }),
            Err(source) => Err(LockError::Unusable { path: dir.display().to_string(), source }),
        }
    }

    #[cfg(test)]
    pub(super) fn in_test(dir: PathBuf) -> Self {
        Self { dir: Self::at(dir).map_or_else(|e| panic!("{e}"), |locks| locks.dir) }
    }

    /// The directory, for who wants to watch for releases.
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }

    /// Somebody has taken `name` in this boot, now or before: its file stays.
    pub fn was_taken(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Names are made of PCI addresses, module names and numbers: no path in
    /// them.
    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name.replace('/', "_"))
    }

    /// Take `name`, without waiting.
    ///
    /// # Errors
    /// It is held, or its file cannot be used.
    pub fn try_take(&self, name: &str) -> Result<Held, LockError> {
        let path = self.path(name);
        let unusable = |source| LockError::Unusable { path: path.display().to_string(), source };
        let until = clock::now() + LOOKED_AT;
        loop {
            // A look by a reader first: closing a file opened for writing is what
            // tells of a release, and a refused attempt must not look like one.
            match own_file(&path).map_err(unusable)? {
                Some(file) if is_busy(&file).map_err(unusable)? => {
                    return Err(LockError::Busy { owner: owner(file) });
                }
                _ => {}
            }
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(FILE_MODE)
                .custom_flags(O_NOFOLLOW)
                .open(&path)
                .map_err(unusable)?;
            match file.try_lock() {
                Ok(()) => {
                    let mut held = Held(file);
                    held.set_owner(std::process::id());
                    return Ok(held);
                }
                // Taken since the look, or looked at by another: the next look tells which.
                Err(TryLockError::WouldBlock) if clock::now() < until => {
                    std::thread::yield_now();
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Busy { owner: owner(file) });
                }
                Err(TryLockError::Error(e)) => return Err(unusable(e)),
            }
        }
    }

    /// Take `name`; who holds it is waited for until `until`.
    ///
    /// # Errors
    /// As [`Locks::try_take`]; busy at the deadline.
    pub fn take_until(&self, name: &str, until: Moment) -> Result<Held, LockError> {
        match self.try_take(name) {
            Err(LockError::Busy { .. }) => {}
            other => return other,
        }
        let unusable =
            |source| LockError::Unusable { path: self.dir.display().to_string(), source };
        let watch = || {
            let files = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
            files.add_watch(&self.dir, AddWatchFlags::IN_CLOSE_WRITE)?;
            Ok(files)
        };
        let files = watch().map_err(unusable)?;
        loop {
            let busy = match self.try_take(name) {
                Err(busy @ LockError::Busy { .. }) => busy,
                other => return other,
            };
            let now = clock::now();
            if now >= until {
                return Err(busy);
            }
            clock::readable(&[files.as_fd()], until.min(now + RETRY)).map_err(unusable)?;
            // Which lock it was does not matter: all are looked at again.
            while files.read_events().is_ok_and(|events| !events.is_empty()) {}
        }
    }
}

const FILE_MODE: u32 = 0o600;

/// A look at a lock takes microseconds. A lock that is only looked at for so long,
/// is somebody else's.
const LOOKED_AT: Duration = Duration::from_secs(2);

/// The lock file at `path` to read, if there is one. What is there and is no file of ours
/// is removed: a lock that somebody else may hold is none. An older ibprov's file loses
/// what it lets others do; who has it open keeps that.
fn own_file(path: &Path) -> io::Result<Option<File>> {
    let how = O_NOFOLLOW | O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(how).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) if e.raw_os_error() == Some(ELOOP) => return fs::remove_file(path).map(|()| None),
        Err(e) => return Err(e),
    };
    let meta = file.metadata()?;
    if !meta.is_file() || !state::is_ours(&meta) {
        return fs::remove_file(path).map(|()| None);
    }
    if meta.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(Some(file))
}

/// True if somebody holds the lock. The look does not keep others from looking.
fn is_busy(file: &File) -> io::Result<bool> {
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// The pid that a lock file holds.
fn owner(mut file: File) -> Option<u32> {
    let mut content = String::new();
    file.read_to_string(&mut content).ok()?;
    content.trim().parse().ok()
}

impl Held {
    /// Write down who holds it, for messages: where that cannot be written, as where /run is
    /// full, the lock is held all the same, and its owner is unknown.
    pub fn set_owner(&mut self, pid: u32) {
        let written = self.0.set_len(0).and_then(|()| self.0.rewind());
        if let Err(e) = written.and_then(|()| writeln!(self.0, "{pid}")) {
            let cause = super::answer(&e);
            tracing::debug!(%cause, "the owner of a lock, process {pid}, cannot be written: {cause}");
        }
    }

    /// One whose file cannot be written, as where /run is full.
    #[cfg(test)]
    pub(super) fn unwritable(path: &Path) -> Self {
        fs::write(path, "").unwrap_or_else(|e| panic!("{e}"));
        Self(File::open(path).unwrap_or_else(|e| panic!("{e}")))
    }

    /// A second handle of the same lock, for a child to hold.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn share(&self) -> io::Result<File> {
        self.0.try_clone()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;
    use crate::host::events::Events;

    fn locks() -> (tempfile::TempDir, Locks) {
        let dir = tempfile::tempdir().expect("temporary directory");
        let locks = Locks::at(dir.path().join("lock")).expect("locks");
        (dir, locks)
    }

    fn owner_of(locks: &Locks) -> Option<u32> {
        match locks.try_take("x") {
            Err(LockError::Busy { owner }) => owner,
            other => panic!("not busy: {other:?}"),
        }
    }

    #[test]
    fn a_held_lock_names_its_owner_until_it_is_dropped() {
        let (_dir, locks) = locks();
        let held = locks.try_take("x").expect("free");
        assert_eq!(owner_of(&locks), Some(std::process::id()));
        assert!(locks.try_take("y").is_ok(), "another object");
        drop(held);
        assert!(locks.try_take("x").is_ok());
    }

    #[test]
    fn a_child_keeps_the_lock_it_was_given() {
        let (_dir, locks) = locks();
        let mut held = locks.try_take("x").expect("free");
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .stdin(Stdio::from(held.share().expect("handle")))
            .spawn()
            .expect("sleep");
        held.set_owner(child.id());
        drop(held);
        assert_eq!(owner_of(&locks), Some(child.id()));
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert!(locks.try_take("x").is_ok());
    }

    #[test]
    fn a_lock_that_another_looks_at_is_free() {
        let (_dir, locks) = locks();
        drop(locks.try_take("x").expect("free"));
        let looks = own_file(&locks.path("x")).expect("a look").expect("a file");
        looks.try_lock_shared().expect("looked at");
        std::thread::scope(|scope| {
            let taker = scope.spawn(|| locks.try_take("x").is_ok());
            // By then it has found the lock looked at.
            let (_none, never) = std::sync::mpsc::channel::<()>();
            let _ = never.recv_timeout(std::time::Duration::from_millis(100));
            looks.unlock().expect("unlock");
            assert!(taker.join().expect("taker"));
        });
        let held = locks.try_take("x").expect("free");
        assert!(is_busy(&looks).expect("a look") && is_busy(&looks).expect("a look"));
        drop(held);
    }

    #[test]
    fn a_release_without_an_event_is_not_missed() {
        let (_dir, locks) = locks();
        let held = locks.try_take("x").expect("free");
        let begin = clock::now();
        std::thread::scope(|scope| {
            let taker =
                scope.spawn(|| locks.take_until("x", begin + Duration::from_secs(600)).is_ok());
            // By then it has found the lock held. No file is closed.
            let (_none, never) = std::sync::mpsc::channel::<()>();
            let _ = never.recv_timeout(std::time::Duration::from_millis(200));
            held.0.unlock().expect("unlock");
            assert!(taker.join().expect("taker"));
        });
        assert!(clock::now() < begin + Duration::from_secs(300), "only the deadline woke it");
    }

    #[test]
    fn a_refused_attempt_is_no_event_and_a_release_is_one() {
        let (_dir, locks) = locks();
        let held = locks.try_take("x").expect("free");
        let mut events = Events::open(&[locks.dir()]).expect("events");
        // A kernel log that fills up may wake us: only files count here.
        let mut files_until = |limit: Duration| {
            let until = clock::now() + limit;
            while clock::now() < until {
                if events.wait(until).expect("wait").files {
                    return true;
                }
            }
            false
        };
        assert_eq!(owner_of(&locks), Some(std::process::id()));
        assert!(
            !files_until(Duration::from_millis(50)),
            "a waiting boot would wake itself for ever"
        );
        drop(held);
        assert!(files_until(Duration::from_secs(60)), "a release must wake who waits");
    }

    /// True if user nobody can get the lock in the file at `path`.
    fn nobody_can_take(path: &Path) -> bool {
        let args = ["--reuid=65534", "--regid=65534", "--clear-groups", "flock", "-n"];
        let status = std::process::Command::new("setpriv")
            .args(args)
            .arg(path)
            .arg("true")
            .stderr(Stdio::null())
            .status();
        status.expect("setpriv, and root to run it").success()
    }

    /// A directory that lets everybody in, as /run does.
    fn open_directory() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("temporary directory");
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("mode");
        dir
    }

    #[test]
    fn nobody_but_root_can_take_a_lock() {
        let dir = open_directory();
        let public = dir.path().join("public");
        fs::write(&public, "").expect("file");
        assert!(nobody_can_take(&public), "or this test sees nothing");
        // As another umask would leave it.
        let (locks_dir, file) = (dir.path().join("lock"), dir.path().join("lock/x"));
        fs::create_dir(&locks_dir).expect("directory");
        fs::set_permissions(&locks_dir, Permissions::from_mode(0o755)).expect("mode");
        fs::write(&file, "1\n").expect("file");
        assert!(nobody_can_take(&file));
        let locks = Locks::at(locks_dir.clone()).expect("locks");
        assert!(!nobody_can_take(&file), "nobody gets into the directory");
        drop(locks.try_take("x").expect("free"));
        drop(locks.try_take("new").expect("free"));
        // Each file by itself, too.
        fs::set_permissions(&locks_dir, Permissions::from_mode(0o755)).expect("mode");
        assert!(!nobody_can_take(&file) && !nobody_can_take(&locks_dir.join("new")));
    }

    #[test]
    fn what_is_no_lock_file_of_root_is_replaced() {
        let (dir, locks) = locks();
        let (file, target) = (dir.path().join("lock/x"), dir.path().join("target"));
        fs::write(&target, "whole").expect("file");
        std::os::unix::fs::symlink(&target, &file).expect("link");
        drop(locks.try_take("x").expect("free"));
        assert_eq!(fs::read_to_string(&target).expect("file"), "whole");
        assert!(fs::symlink_metadata(&file).expect("file").is_file());
        // Nobody's, and held by it.
        std::os::unix::fs::chown(&file, Some(65534), None).expect("tests run as root");
        let theirs = File::open(&file).expect("file");
        theirs.lock().expect("held");
        drop(locks.try_take("x").expect("it is another file now"));
        assert_eq!(fs::metadata(&file).expect("file").uid(), 0);
    }
}
