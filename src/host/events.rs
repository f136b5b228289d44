//! Waiting for whatever happens next, under one deadline.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};

use super::clock;
use super::kernel_log::{KernelLine, KernelLog};
use super::link_events::LinkEvents;
use super::udev::{Drained, UdevEvent, UdevMonitor};
use crate::names::Moment;

/// Where udevd keeps `queue` while it has events queued or in work.
const UDEV_RUN: &str = "/run/udev";

/// Everything that `boot` waits on.
#[derive(Debug)]
pub struct Events {
    udev: Option<UdevMonitor>,
    kernel: Option<KernelLog>,
    files: Option<Inotify>,
    links: Option<LinkEvents>,
    stop: UnixStream,
    child: UnixStream,
    /// What could not be opened, for the report.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Happened {
    pub stop: bool,
    /// A child may have ended.
    pub child: bool,
    /// udevd has nothing queued or in work any more (`/run/udev/queue` is gone).
    pub udev_idle: bool,
    /// A file of a watched directory that was open for writing was closed: a
    /// lock was released.
    pub files: bool,
    /// A link or an address changed; heard after [`Events::listen_to_links`].
    pub links: bool,
    pub udev: Vec<UdevEvent>,
    /// More of udev's events came than could be held: some were missed.
    pub udev_overrun: bool,
    /// Lines that the kernel log got since we began to listen.
    pub kernel: Vec<KernelLine>,
}

impl Happened {
    /// Something happened to a device, or more than can be told.
    pub const fn to_devices(&self) -> bool {
        !self.udev.is_empty() || self.udev_overrun
    }
}

impl Events {
    /// Begin to listen, also for files closed in `watched_dirs`. What cannot be
    /// listened to becomes a problem, not an error: without udev or kernel log,
    /// `boot` still has its deadline.
    ///
    /// # Errors
    /// Signals cannot be caught.
    pub fn open(watched_dirs: &[&Path]) -> io::Result<Self> {
        Self::open_with(watched_dirs, UdevMonitor::open())
    }

    /// As [`Events::open`], but with the kernel's own device events, for who
    /// asks sysfs about devices and cares for no name.
    ///
    /// # Errors
    /// As [`Events::open`].
    pub fn open_unprocessed(watched_dirs: &[&Path]) -> io::Result<Self> {
        Self::open_with(watched_dirs, UdevMonitor::open_unprocessed())
    }

    /// Only the kernel log and signals, for who mostly waits for a child. The rest
    /// is begun with when it is needed.
    ///
    /// # Errors
    /// As [`Events::open`].
    pub fn open_quiet() -> io::Result<Self> {
        let signal = |signals: &[i32]| -> io::Result<UnixStream> {
            let (ours, theirs) = UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            for signal in signals {
                signal_hook::low_level::pipe::register(*signal, theirs.try_clone()?)?;
            }
            Ok(ours)
        };
        let mut problems = Vec::new();
        let kernel = KernelLog::open_at_end().map_err(|e| {
            let e = super::answer(&e);
            problems.push(format!("cannot read /dev/kmsg, so causes may be missing: {e}"));
        });
        Ok(Self {
            udev: None,
            kernel: kernel.ok(),
            files: None,
            links: None,
            stop: signal(&[SIGTERM, SIGINT])?,
            child: signal(&[SIGCHLD])?,
            problems,
        })
    }

    fn open_with(watched_dirs: &[&Path], udev: io::Result<UdevMonitor>) -> io::Result<Self> {
        let mut events = Self::open_quiet()?;
        events.take_udev(udev);
        events.watch_closed(watched_dirs);
        events.watch(Path::new(UDEV_RUN), AddWatchFlags::IN_DELETE);
        Ok(events)
    }

    fn take_udev(&mut self, udev: io::Result<UdevMonitor>) {
        match udev {
            Ok(udev) => self.udev = Some(udev),
            Err(e) => {
                let e = super::answer(&e);
                let problem = format!("cannot listen to udev: {e}");
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
        }
    }

    /// Listen to the kernel's own device events too. False if they are heard
    /// already, or cannot be; after true, look once more before waiting.
    pub fn listen_to_kernel_devices(&mut self) -> bool {
        if self.udev.is_some() {
            return false;
        }
        self.take_udev(UdevMonitor::open_unprocessed());
        self.udev.is_some()
    }

    /// Tell of files closed in `dirs` too. Look once more before waiting.
    pub fn watch_closed(&mut self, dirs: &[&Path]) {
        for dir in dirs {
            self.watch(dir, AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_MOVED_TO);
        }
    }

    fn watch(&mut self, dir: &Path, mask: AddWatchFlags) {
        if self.files.is_none() {
            match Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC) {
                Ok(files) => self.files = Some(files),
                Err(e) => {
                    let e = super::errno_name(e);
                    self.problems.push(format!("cannot watch files: inotify_init1: {e}"));
                }
            }
        }
        match self.files.as_ref().map(|files| files.add_watch(dir, mask)) {
            None | Some(Ok(_) | Err(Errno::ENOENT)) => {}
            Some(Err(e)) => {
                let e = super::errno_name(e);
                self.problems.push(format!("cannot watch {}: {e}", dir.display()));
            }
        }
    }

    /// Listen to changes of links and addresses too.
    pub fn listen_to_links(&mut self) {
        match LinkEvents::open() {
            Ok(links) => self.links = Some(links),
            Err(e) => {
                let e = super::answer(&e);
                self.problems.push(format!("cannot listen to links and addresses: {e}"));
            }
        }
    }

    /// True if udev's events are listened to.
    pub const fn hears_udev(&self) -> bool {
        self.udev.is_some()
    }

    /// Tell of files that are made in `dir` too: sockets are never closed after
    /// writing. Nothing happens if there is no such directory.
    pub fn watch_new_files(&mut self, dir: &Path) {
        self.watch(dir, AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO);
    }

    /// Wait until something happens, or until `until`.
    ///
    /// # Errors
    /// poll or a read fails.
    pub fn wait(&mut self, until: Moment) -> io::Result<Happened> {
        self.wait_also(until, Vec::new())
    }

    /// As [`Events::wait`], and ends too when one of `more` can be read, which
    /// is left to the caller.
    ///
    /// # Errors
    /// As [`Events::wait`].
    pub fn wait_also(&mut self, until: Moment, more: Vec<BorrowedFd<'_>>) -> io::Result<Happened> {
        let mut fds: Vec<BorrowedFd<'_>> = more;
        fds.extend([self.stop.as_fd(), self.child.as_fd()]);
        fds.extend(self.udev.as_ref().map(AsFd::as_fd));
        fds.extend(self.kernel.as_ref().map(AsFd::as_fd));
        fds.extend(self.files.as_ref().map(AsFd::as_fd));
        fds.extend(self.links.as_ref().map(AsFd::as_fd));
        clock::readable(&fds, until)?;
        let (udev_idle, files) = self.changed_files()?;
        let udev = self.udev.as_ref().map_or_else(|| Ok(Drained::default()), UdevMonitor::drain)?;
        Ok(Happened {
            udev_idle,
            files,
            links: self.links.as_ref().map_or(Ok(false), LinkEvents::drain)?,
            udev: udev.events,
            udev_overrun: udev.overrun,
            kernel: self.kernel_lines()?,
            ..self.signals()?
        })
    }

    /// Wait until one of `more` can be read, which is left to the caller, a child
    /// has ended, or we are to stop. What else happens is kept for the next wait:
    /// a hundred devices that come are a thousand events.
    ///
    /// # Errors
    /// As [`Events::wait`].
    pub fn wait_only(&mut self, until: Moment, more: Vec<BorrowedFd<'_>>) -> io::Result<Happened> {
        let mut fds: Vec<BorrowedFd<'_>> = more;
        fds.extend([self.stop.as_fd(), self.child.as_fd()]);
        clock::readable(&fds, until)?;
        self.signals()
    }

    fn signals(&mut self) -> io::Result<Happened> {
        let (stop, child) = (emptied(&mut self.stop)?, emptied(&mut self.child)?);
        Ok(Happened { stop, child, ..Happened::default() })
    }

    /// What the kernel log got since it was last read; does not wait.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn kernel_lines(&mut self) -> io::Result<Vec<KernelLine>> {
        self.kernel.as_mut().map_or_else(|| Ok(Vec::new()), KernelLog::drain)
    }

    /// Whether udev became idle, and whether a watched file was closed.
    fn changed_files(&self) -> io::Result<(bool, bool)> {
        match self.files.as_ref().map(Inotify::read_events) {
            None | Some(Err(Errno::EAGAIN)) => Ok((false, false)),
            Some(Ok(events)) => {
                let is_queue = |e: &InotifyEvent| e.name.as_deref() == Some(OsStr::new("queue"));
                let deleted = |e: &&InotifyEvent| e.mask.contains(AddWatchFlags::IN_DELETE);
                let idle = events.iter().filter(deleted).any(is_queue);
                Ok((idle, events.iter().any(|e| !deleted(&e))))
            }
            Some(Err(e)) => Err(e.into()),
        }
    }
}

/// True if the signal's pipe held anything.
fn emptied(pipe: &mut UnixStream) -> io::Result<bool> {
    let mut buffer = [0_u8; 64];
    let mut any = false;
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => return Ok(any),
            Ok(_) => any = true,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(any),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_wait_ends_at_its_deadline_and_on_a_file_event() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut events = Events::open(&[dir.path()]).expect("events");
        let begin = clock::now();
        while clock::now() < begin + Duration::from_millis(30) {
            assert!(!events.wait(begin + Duration::from_millis(30)).expect("wait").files);
        }
        std::fs::write(dir.path().join("lock"), "1").expect("file");
        let deadline = clock::now() + Duration::from_secs(10);
        while clock::now() < deadline {
            if events.wait(deadline).expect("wait").files {
                return;
            }
        }
        panic!("the closed file was no event");
    }
}
