#![allow(clippy::disallowed_methods, reason = "the one place where programs are run")]

//! Running other programs. Whatever can sleep uninterruptibly goes here: a
//! child in that state cannot be killed, but it delays nobody.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::clock;
use super::lock::Held;

/// A program that is running.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: Option<File>,
    stderr: Option<File>,
    /// When it was started, microseconds of CLOCK_MONOTONIC.
    pub started_usec: u64,
    /// What was run, for messages.
    pub command_line: String,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Why it did not succeed, if so.
    pub failure: Option<Failure>,
    /// What it wrote to standard error, at most 16 KiB; empty where it has ours.
    pub stderr: String,
    /// What it wrote to standard output, at most 4 MiB, where that was kept.
    pub stdout: String,
    /// How long it ran, microseconds.
    pub took_usec: u64,
}

/// Why a program is not known to have succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It ended with another exit status than 0, or by a signal.
    Ended(ExitStatus),
    /// It could not be waited for: this is the answer.
    NotSeen(Errno),
}

impl Failure {
    /// What this end is, unless it is success.
    fn of(status: ExitStatus) -> Option<Self> {
        (!status.success()).then_some(Self::Ended(status))
    }

    /// The same of a status as wait(2) gives it.
    #[cfg(test)]
    pub(crate) fn of_raw(status: i32) -> Option<Self> {
        Self::of(ExitStatus::from_raw(status))
    }

    /// A signal has ended it.
    #[must_use]
    pub fn is_by_signal(&self) -> bool {
        matches!(self, Self::Ended(status) if status.signal().is_some())
    }

    /// It could not be waited for, by the system's answer.
    #[must_use]
    pub fn not_seen(answer: &io::Error) -> Self {
        Self::NotSeen(answer.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw))
    }
}

impl fmt::Display for Failure {
    /// `exit status: 1`, `signal: 9 (SIGKILL)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(status) => status.fmt(f),
            Self::NotSeen(errno) => io::Error::from(*errno).fmt(f),
        }
    }
}

impl Ended {
    /// Of one that cannot be seen to its end: `failure` says why, if that is known.
    #[must_use]
    pub const fn unseen(failure: Option<Failure>) -> Self {
        Self { failure, stderr: String::new(), stdout: String::new(), took_usec: 0 }
    }
}

/// Where administrators' programs are, in the order of a root shell's PATH.
/// PATH itself is not trusted.
const SBIN: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// The program `name` in the system's own directories.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    SBIN.into_iter().map(|dir| Path::new(dir).join(name)).find(|p| p.is_file())
}

/// Start `program`. It gets `lock` as its standard input, so the lock is held
/// for as long as it runs.
///
/// # Errors
/// It cannot be started.
pub fn start(program: &Path, args: &[String], lock: Option<Held>) -> io::Result<Running> {
    run(program, args, lock, None)
}

/// Start `program` and collect its standard output.
///
/// # Errors
/// It cannot be started.
pub fn start_collecting(program: &Path, args: &[String]) -> io::Result<Running> {
    let stdout = File::from(memfd_create(c"stdout", MFdFlags::MFD_CLOEXEC)?);
    run(program, args, None, Some(stdout))
}

fn run(
    program: &Path,
    args: &[String],
    lock: Option<Held>,
    stdout: Option<File>,
) -> io::Result<Running> {
    let stderr = File::from(memfd_create(c"stderr", MFdFlags::MFD_CLOEXEC)?);
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .env("PATH", SBIN.join(":"))
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(match &lock {
            Some(held) => Stdio::from(held.share()?),
            None => Stdio::null(),
        })
        .stdout(match &stdout {
            Some(file) => Stdio::from(file.try_clone()?),
            None => Stdio::null(),
        })
        .stderr(Stdio::from(stderr.try_clone()?));
    let child = command.spawn()?;
    if let Some(mut held) = lock {
        held.set_owner(child.id())?;
    }
    let command_line = std::iter::once(program.display().to_string())
        .chain(args.iter().cloned())
        .collect::<Vec<_>>()
        .join(" ");
    Ok(Running {
        child,
        stdout,
        stderr: Some(stderr),
        started_usec: clock::monotonic_usec(),
        command_line,
    })
}

/// Start this program again with `args`. It logs where this one logs; its
/// standard output is kept.
///
/// # Errors
/// It cannot be started.
pub fn start_self(args: &[String]) -> io::Result<Running> {
    let stdout = File::from(memfd_create(c"stdout", MFdFlags::MFD_CLOEXEC)?);
    let child = Command::new("/proc/self/exe")
        .args(args)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::from(stdout.try_clone()?))
        .spawn()?;
    Ok(Running {
        child,
        stdout: Some(stdout),
        stderr: None,
        started_usec: clock::monotonic_usec(),
        command_line: format!("ibprov {}", args.join(" ")),
    })
}

/// Start this program again, as `ibprov VERB`, with `socket` as its standard input
/// and `lock` as its standard output: it prints nothing, and so long as it lives the
/// lock is held. The environment is empty.
///
/// # Errors
/// It cannot be started.
pub fn start_self_on(socket: UnixStream, lock: Option<File>, verb: &str) -> io::Result<Child> {
    // The program itself, whatever became of the file it was started from.
    Command::new("/proc/self/exe")
        .arg(verb)
        .env_clear()
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(lock.map_or_else(Stdio::null, Stdio::from))
        .spawn()
}

impl Running {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// End it. Whether it does shows in [`Running::ended`].
    ///
    /// # Errors
    /// It cannot be signalled.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    /// Ask it to end (SIGTERM), which a child that hangs does not hear.
    pub fn ask_to_end(&self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap_or_default());
        // One that has ended needs no signal.
        if pid.as_raw() > 0
            && let Err(e) = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)
        {
            let cause = super::errno_name(e);
            tracing::debug!(%cause, "cannot signal process {pid}: {cause}");
        }
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn ended(&mut self) -> io::Result<Option<Ended>> {
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        Ok(Some(Ended {
            failure: Failure::of(status),
            stderr: kept(self.stderr.as_mut(), 16 << 10)?,
            stdout: kept(self.stdout.as_mut(), 4 << 20)?,
            took_usec: clock::monotonic_usec().saturating_sub(self.started_usec),
        }))
    }
}

/// What a child wrote into `file`, at most `limit` bytes.
fn kept(file: Option<&mut File>, limit: u64) -> io::Result<String> {
    let Some(file) = file else { return Ok(String::new()) };
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// True for root, who alone may load modules.
#[must_use]
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// What this process itself has used, children not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system CPU time, microseconds.
    pub cpu_usec: u64,
    /// Peak resident memory, KiB.
    pub peak_memory_kib: u64,
}

/// What this process has used so far: CPU time by `getrusage(2)`, RUSAGE_SELF,
/// memory by VmHWM of `/proc/self/status`.
///
/// The CPU time has in it what systemd did in this process before it became
/// ibprov (namespaces, seccomp filters). So would the memory by getrusage.
#[must_use]
pub fn own_usage() -> Usage {
    use nix::sys::resource::{UsageWho, getrusage};
    let usec = |t: nix::sys::time::TimeVal| {
        u64::try_from(t.tv_sec()).unwrap_or_default() * 1_000_000
            + u64::try_from(t.tv_usec()).unwrap_or_default()
    };
    // RUSAGE_SELF cannot fail (getrusage(2)).
    let cpu = getrusage(UsageWho::RUSAGE_SELF);
    let status = super::Root::live().attribute("/proc/self/status").unwrap_or_default();
    Usage {
        cpu_usec: cpu.map_or(0, |u| usec(u.user_time()) + usec(u.system_time())),
        peak_memory_kib: peak(&status).unwrap_or_default(),
    }
}

/// `VmHWM:     3712 kB`
fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The standard output of a short program, `None` with the reason if it is
/// missing, fails or prints no text. For questions that systemctl answers.
///
/// # Errors
/// It cannot be started, or fails.
pub fn output(name: &str, args: &[&str]) -> io::Result<String> {
    let program = find(name)
        .ok_or_else(|| io::Error::other(format!("{name} is not in {}", SBIN.join(", "))))?;
    let out = Command::new(program).args(args).env("LC_ALL", "C").stdin(Stdio::null()).output()?;
    if out.status.success() {
        return String::from_utf8(out.stdout).map_err(io::Error::other);
    }
    let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    Err(io::Error::other(format!("{name} {}: {}: {said}", args.join(" "), out.status)))
}

/// What a program that was waited for has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// It has ended. If not, it was killed at the deadline.
    pub ended: bool,
    /// Why it did not succeed, if so.
    pub failure: Option<Failure>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// The text on standard output.
    ///
    /// # Errors
    /// The program did not end in time, failed, or printed no text.
    pub fn into_text(self, name: &str, args: &[&str]) -> io::Result<String> {
        let command = || format!("{name} {}", args.join(" "));
        if !self.ended {
            return Err(io::Error::other(format!("{}: no answer in time", command())));
        }
        if let Some(failure) = self.failure {
            let said = self.stderr;
            return Err(io::Error::other(format!("{}: {failure}: {said}", command())));
        }
        String::from_utf8(self.stdout).map_err(io::Error::other)
    }
}

/// Run a program that answers soon, and kill it if it has not by `until_usec`
/// of CLOCK_MONOTONIC. Not for what can sleep uninterruptibly.
///
/// # Errors
/// It is missing, cannot be started or cannot be waited for.
pub fn output_until(name: &str, args: &[&str], until_usec: u64) -> io::Result<Output> {
    let program = find(name)
        .ok_or_else(|| io::Error::other(format!("{name} is not in {}", SBIN.join(", "))))?;
    let mut child = Command::new(program)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let read = read_both(&mut child, until_usec);
    if !matches!(read, Ok((_, _, true))) {
        // Whoever closes both pipes is about to end; this one has not.
        child.kill()?;
    }
    let status = child.wait()?;
    let (stdout, stderr, ended) = read?;
    Ok(Output {
        ended,
        failure: Failure::of(status),
        stdout,
        stderr: String::from_utf8_lossy(&stderr).trim().to_owned(),
    })
}

/// What comes through both pipes until they are closed (then true) or the
/// deadline has passed.
fn read_both(child: &mut Child, until_usec: u64) -> io::Result<(Vec<u8>, Vec<u8>, bool)> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("no pipes"));
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (mut out_open, mut err_open) = (true, true);
    let mut buffer = [0_u8; 8192];
    while out_open || err_open {
        let timeout = clock::poll_timeout(until_usec);
        if timeout == PollTimeout::ZERO {
            return Ok((out, err, false));
        }
        let mut fds = Vec::new();
        if out_open {
            fds.push(PollFd::new(stdout.as_fd(), PollFlags::POLLIN));
        }
        if err_open {
            fds.push(PollFd::new(stderr.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or_default()).collect();
        let mut ready = ready.into_iter();
        if out_open && ready.next() == Some(true) {
            let n = stdout.read(&mut buffer)?;
            out.extend(buffer.get(..n).unwrap_or_default());
            out_open = n > 0;
        }
        if err_open && ready.next() == Some(true) {
            let n = stderr.read(&mut buffer)?;
            err.extend(buffer.get(..n).unwrap_or_default());
            err_open = n > 0;
        }
    }
    Ok((out, err, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_pipes_are_read_to_their_end() {
        let script = "head -c 200000 /dev/zero; head -c 200000 /dev/zero >&2; exit 3";
        let until = clock::monotonic_usec() + 20_000_000;
        let out = output_until("sh", &["-c", script], until).expect("sh");
        let failure = out.failure.as_ref().map(ToString::to_string);
        assert_eq!((out.ended, failure.as_deref()), (true, Some("exit status: 3")));
        assert_eq!((out.stdout.len(), out.stderr.len()), (200_000, 200_000));
        let e = out.into_text("sh", &["-c", "x"]).expect_err("it failed");
        assert!(e.to_string().starts_with("sh -c x: exit status: 3: "), "{e}");
    }

    #[test]
    fn a_program_that_does_not_answer_is_ended_at_the_deadline() {
        let begin = clock::monotonic_usec();
        let out = output_until("sleep", &["60"], begin + 100_000).expect("sleep");
        assert!(!out.ended && clock::monotonic_usec() < begin + 20_000_000);
        assert!(out.into_text("sleep", &["60"]).is_err());
    }
}
