#![allow(clippy::disallowed_methods, reason = "the one place where programs are run")]

//! Running other programs. Whatever can sleep uninterruptibly goes here: a
//! child in that state cannot be killed, but it delays nobody.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use signal_hook::consts::SIGCHLD;

use super::answer;
use super::clock;
use super::lock::Held;
use crate::names::Moment;

/// A program that is running.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: Option<File>,
    stderr: Option<File>,
    /// When it was started.
    pub started: Moment,
    /// What was run, for messages.
    pub command_line: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Why it did not succeed, if so.
    pub failure: Option<Failure>,
    /// What it wrote to standard error, at most 16 KiB; empty where it has ours.
    pub stderr: String,
    /// What it wrote to standard output, at most 4 MiB, where that was kept.
    pub stdout: String,
    /// How long it ran.
    pub took: Duration,
}

/// Why a program is not known to have succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It ended with another exit status than 0, or by a signal.
    #[error("{0}")]
    Ended(ExitStatus),
    /// It could not be waited for: this is the answer.
    #[error("{}", io::Error::from(*.0))]
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

    /// The exit status, if it has ended with one.
    pub fn exit_code(&self) -> Option<u8> {
        match self {
            Self::Ended(status) => status.code().and_then(|code| u8::try_from(code).ok()),
            Self::NotSeen(_) => None,
        }
    }

    /// A signal has ended it.
    pub fn is_by_signal(&self) -> bool {
        matches!(self, Self::Ended(status) if status.signal().is_some())
    }

    /// It could not be waited for, by the system's answer.
    pub fn not_seen(answer: &io::Error) -> Self {
        Self::NotSeen(answer.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw))
    }
}

impl Ended {
    /// Of one that cannot be seen to its end: `failure` says why, if that is known.
    pub const fn unseen(failure: Option<Failure>) -> Self {
        Self { failure, stderr: String::new(), stdout: String::new(), took: Duration::ZERO }
    }
}

/// Where administrators' programs are, in the order of a root shell's PATH.
/// PATH itself is not trusted.
const SBIN: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// This program itself, whatever became of the file it was started from.
const SELF: &str = "/proc/self/exe";

/// The program `name` in the system's own directories; none in a build for the fuzzer.
pub fn find(name: &str) -> Option<PathBuf> {
    // What is fuzzed chooses the program and what it reads.
    if cfg!(fuzzing) {
        return None;
    }
    SBIN.into_iter().map(|dir| Path::new(dir).join(name)).find(|p| p.is_file())
}

/// The program `name`, or that it is missing.
fn installed(name: &str) -> io::Result<PathBuf> {
    find(name).ok_or_else(|| io::Error::other(format!("{name} is not in {}", SBIN.join(", "))))
}

/// The environment that a program gets.
#[derive(Debug, Clone, Copy)]
enum Environment {
    /// PATH and LC_ALL, so that what it says can be read and nobody who started us
    /// has a say in what it does.
    Safe,
    /// The same, and where this is root, the rights of nobody.
    Nobody,
    /// As [`Self::Safe`], and in our process group: setsid(1) needs no child then.
    SafeHere,
    /// Ours: of our own kind, it logs as we do.
    Ours,
}

/// The user and group who own nothing: the kernel's own default for them
/// (`DEFAULT_OVERFLOWUID`).
pub(super) const NOBODY: u32 = 65534;

/// What a program is held to that reads what somebody may have made to do harm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cage {
    /// How much address space it may take, bytes.
    pub(super) address_space: u64,
    /// Where this is root, it gets the rights of nobody.
    pub(super) as_nobody: bool,
}

/// The one place where a program is started: in a process group of its own, by which
/// it is ended with all that it started, and in `/`, which keeps no file system busy.
fn spawn(
    program: &Path,
    args: &[impl AsRef<OsStr>],
    environment: Environment,
    [stdin, stdout, stderr]: [Stdio; 3],
) -> io::Result<Child> {
    command(program, args, environment).stdin(stdin).stdout(stdout).stderr(stderr).spawn()
}

fn command(program: &Path, args: &[impl AsRef<OsStr>], environment: Environment) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir("/");
    if !matches!(environment, Environment::SafeHere) {
        command.process_group(0);
    }
    if matches!(environment, Environment::Ours) {
        // NotifyAccess=main: systemd warns of what any other process tells it.
        command.env_remove("NOTIFY_SOCKET");
    } else {
        command.env_clear().env("PATH", SBIN.join(":")).env("LC_ALL", "C");
    }
    if matches!(environment, Environment::Nobody) && is_root() {
        // Our other groups go with it.
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Kill `child`, which nobody has waited for, with all that it started, as far as that
/// stayed in its group. Until it is waited for, its number is no other group's.
fn kill_group(child: &Child) -> io::Result<()> {
    killpg(pid_of(child)?, Signal::SIGKILL).map_err(io::Error::from)
}

/// The same, unless it is seen to have ended.
fn kill_if_running(child: &mut Child) -> io::Result<()> {
    if child.try_wait()?.is_some() { Ok(()) } else { kill_group(child) }
}

fn pid_of(child: &Child) -> io::Result<Pid> {
    i32::try_from(child.id()).map(Pid::from_raw).map_err(io::Error::other)
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
    let streams = [
        lock.as_ref().map(Held::share).transpose()?.map_or_else(Stdio::null, Stdio::from),
        stdout.as_ref().map(File::try_clone).transpose()?.map_or_else(Stdio::null, Stdio::from),
        Stdio::from(stderr.try_clone()?),
    ];
    let child = spawn(program, args, Environment::Safe, streams)?;
    if let Some(mut held) = lock {
        held.set_owner(child.id());
    }
    let command_line = std::iter::once(program.display().to_string())
        .chain(args.iter().cloned())
        .collect::<Vec<_>>()
        .join(" ");
    Ok(Running { child, stdout, stderr: Some(stderr), started: clock::now(), command_line })
}

/// Become `program`: the process and its standard output and error stay, its standard input
/// is empty. `variables` are put into the environment, which is else as for a program of ours.
/// Gives the system's answer if that fails.
pub fn become_program(program: &Path, args: &[&str], variables: &[(&str, &Path)]) -> io::Error {
    let mut command = Command::new(program);
    command.args(args).current_dir("/").stdin(Stdio::null());
    command.env_clear().env("PATH", SBIN.join(":")).env("LC_ALL", "C");
    command.envs(variables.iter().copied()).exec()
}

/// Send SIGHUP to the main process of the unit whose ExecReload= this is, if it has become
/// `program`: systemd names it by MAINPID (systemd.exec(5)). kill(1) is not on every host.
///
/// # Errors
/// MAINPID names no process; the signal cannot be sent.
pub fn hang_up_main(program: &str) -> io::Result<()> {
    let pid = std::env::var("MAINPID").ok().and_then(|pid| pid.parse::<i32>().ok());
    let pid = pid.filter(|pid| *pid > 1).ok_or_else(|| {
        io::Error::other("MAINPID names no process: use `systemctl reload` of the unit")
    })?;
    if std::fs::read_to_string(format!("/proc/{pid}/comm"))?.trim_end() == program {
        kill(Pid::from_raw(pid), Signal::SIGHUP)?;
    }
    Ok(())
}

/// Start this program again with `args`. It logs where this one logs; its
/// standard output is kept.
///
/// # Errors
/// It cannot be started.
pub fn start_self(args: &[String]) -> io::Result<Running> {
    let stdout = File::from(memfd_create(c"stdout", MFdFlags::MFD_CLOEXEC)?);
    let streams = [Stdio::null(), Stdio::from(stdout.try_clone()?), Stdio::inherit()];
    let child = spawn(Path::new(SELF), args, Environment::Ours, streams)?;
    Ok(Running {
        child,
        stdout: Some(stdout),
        stderr: None,
        started: clock::now(),
        command_line: format!("ibprov {}", args.join(" ")),
    })
}

/// Start this program again with `args`, with `socket` as its standard input
/// and `lock` as its standard output: it prints nothing, and so long as it lives the
/// lock is held. The environment is empty. It logs where this process does, unless `is_mute`: who
/// reads that stream to its end waits for each process that has it.
///
/// # Errors
/// It cannot be started.
pub fn start_self_on(
    socket: UnixStream,
    lock: Option<File>,
    is_mute: bool,
    args: &[String],
) -> io::Result<Child> {
    let lock = lock.map_or_else(Stdio::null, Stdio::from);
    let log = if is_mute { Stdio::null() } else { Stdio::inherit() };
    let streams = [Stdio::from(OwnedFd::from(socket)), lock, log];
    spawn(Path::new(SELF), args, Environment::Safe, streams)
}

/// A process of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnProcess {
    pub pid: u32,
    /// For how long it has been there.
    pub age: Duration,
}

/// The oldest process of this program that root or this user has started with `args`: the
/// process `known`, or whichever. None also of one that `/proc` does not show.
pub fn own_process(args: &[String], known: Option<u32>) -> Option<OwnProcess> {
    let pids = match known {
        Some(pid) => vec![pid],
        None => {
            let entries = std::fs::read_dir("/proc").ok()?.flatten();
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        }
    };
    let own = |pid| Some(OwnProcess { pid, age: age_of_own(pid, args)? });
    pids.into_iter().filter_map(own).max_by_key(|own| own.age)
}

/// For how long the process `pid` has been there, if it is [`own_process`].
fn age_of_own(pid: u32, args: &[String]) -> Option<Duration> {
    /// `USER_HZ`, the unit of the times in `/proc`.
    const TICK_MSEC: u64 = 10;
    let read = |file| std::fs::read(format!("/proc/{pid}/{file}")).ok();
    // First of all, since the command line of a process that hangs in another way may hang too.
    // By its path the kernel calls it so (`begin_new_exec()`, fs/exec.c).
    if read("comm")?
        != b"exe
"
    {
        return None;
    }
    let words = std::iter::once(SELF).chain(args.iter().map(String::as_str));
    let line: Vec<u8> = words.flat_map(|word| word.bytes().chain([0])).collect();
    let status = String::from_utf8(read("status")?).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let user: u32 = users.split_whitespace().next()?.parse().ok()?;
    let is_trusted = user == 0 || user == nix::unistd::getuid().as_raw();
    // Once its parent is gone, the first thread has ended, and shows none any more: the thread
    // that hangs does.
    let mut threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let is_it = |thread: &std::fs::DirEntry| {
        std::fs::read(thread.path().join("cmdline")).is_ok_and(|own| own == line)
    };
    if !is_trusted || !threads.any(|thread| is_it(&thread)) {
        return None;
    }
    let stat = String::from_utf8_lossy(&read("stat")?).into_owned();
    // What follows the name begins with the third field; the 22nd is the start.
    let (_, fields) = stat.rsplit_once(')')?;
    let started: u64 = fields.split_whitespace().nth(19)?.parse().ok()?;
    let started = Duration::from_millis(started.saturating_mul(TICK_MSEC));
    Some(clock::since_boot().saturating_sub(started))
}

/// A program whose output is read while it runs, as long as it is wanted, or until a
/// deadline. It is ended once nobody reads any more.
#[derive(Debug)]
pub(super) struct Streaming {
    child: Child,
    until: Option<Moment>,
}

/// Start `program` with this standard input, in this cage if in one. What it has to say
/// of itself is not kept.
///
/// # Errors
/// It cannot be started, or not held to the limit: prlimit(1) of util-linux does that,
/// which no host with systemd is without.
pub(super) fn start_streaming(
    program: &Path,
    args: &[&str],
    stdin: Stdio,
    cage: Option<Cage>,
) -> io::Result<Streaming> {
    let streams = [stdin, Stdio::piped(), Stdio::null()];
    let child = match cage {
        None => spawn(program, args, Environment::Safe, streams),
        Some(Cage { address_space, as_nobody }) => {
            let limit = format!("--as={address_space}");
            let mut caged = vec![OsStr::new(&limit), OsStr::new("--core=0"), OsStr::new("--")];
            caged.push(program.as_os_str());
            caged.extend(args.iter().map(OsStr::new));
            let rights = if as_nobody { Environment::Nobody } else { Environment::Safe };
            spawn(&installed("prlimit")?, &caged, rights, streams)
        }
    };
    child.map(|child| Streaming { child, until: None })
}

impl Streaming {
    /// Read no longer than until `until`: then reading fails with
    /// ETIMEDOUT.
    pub(super) const fn until(mut self, until: Moment) -> Self {
        self.until = Some(until);
        self
    }

    /// Wait until there is something to read.
    fn wait(&self) -> io::Result<()> {
        let (Some(until), Some(out)) = (self.until, &self.child.stdout) else { return Ok(()) };
        while clock::now() < until {
            if clock::readable(&[out.as_fd()], until)?.contains(&true) {
                return Ok(());
            }
        }
        Err(Errno::ETIMEDOUT.into())
    }

    /// Wait for its end, having read all: why it did not succeed, if so.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub(super) fn ended(mut self) -> io::Result<Option<Failure>> {
        // One that has more to say ends by SIGPIPE.
        drop(self.child.stdout.take());
        self.child.wait().map(Failure::of)
    }
}

impl Read for Streaming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.child.stdout.as_mut().map_or(Ok(0), |out| out.read(buffer))
    }
}

impl Drop for Streaming {
    /// A reader that stops early must not leave the writer behind. Nobody is left to
    /// tell if it cannot be ended.
    fn drop(&mut self) {
        drop(self.child.stdout.take());
        drop(kill_if_running(&mut self.child).and_then(|()| self.child.wait()));
    }
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// End it, with all that it started. Whether it does shows in [`Running::ended`].
    ///
    /// # Errors
    /// It cannot be signalled.
    pub fn kill(&mut self) -> io::Result<()> {
        kill_if_running(&mut self.child)
    }

    /// Ask it to end (SIGTERM), which a child that hangs does not hear.
    pub fn ask_to_end(&self) {
        let Ok(pid) = pid_of(&self.child) else { return };
        // One that has ended needs no signal.
        if let Err(e) = kill(pid, Signal::SIGTERM) {
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
            took: clock::now().since(self.started),
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
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// What this process itself has used, children not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system CPU time.
    pub cpu: Duration,
    /// Peak resident memory, KiB.
    pub peak_memory_kib: u64,
}

/// What this process has used so far: CPU time by `getrusage(2)`, RUSAGE_SELF,
/// memory by VmHWM of `/proc/self/status`.
///
/// The CPU time has in it what systemd did in this process before it became
/// ibprov (namespaces, seccomp filters). So would the memory by getrusage.
pub fn own_usage() -> Usage {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike as _;
    // RUSAGE_SELF cannot fail (getrusage(2)).
    let cpu = getrusage(UsageWho::RUSAGE_SELF).map(|u| u.user_time() + u.system_time());
    let usec = cpu.ok().and_then(|cpu| cpu.num_microseconds().try_into().ok());
    let status = super::Root::live().attribute("/proc/self/status").unwrap_or_default();
    Usage {
        cpu: usec.map(Duration::from_micros).unwrap_or_default(),
        peak_memory_kib: peak(&status).unwrap_or_default(),
    }
}

/// `VmHWM:     3712 kB`
fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What a program that was waited for has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// It has ended. If not, it was killed at the deadline, or left alone.
    pub ended: bool,
    /// The process that has not ended then either, if so: one that was killed sleeps
    /// uninterruptibly, and is left to the kernel.
    pub left: Option<u32>,
    /// Why it did not succeed, if so.
    pub failure: Option<Failure>,
    pub stdout: Vec<u8>,
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
            let mut late = format!("{} has not answered before the timeout", command());
            if let Some(pid) = self.left {
                late.push_str(&format!(
                    ", and process {pid} does not end when it is killed: it sleeps uninterruptibly in the kernel"
                ));
            }
            return Err(io::Error::new(io::ErrorKind::TimedOut, late));
        }
        if let Some(failure) = self.failure {
            let said = self.stderr;
            return Err(io::Error::other(format!("{}: {failure}: {said}", command())));
        }
        String::from_utf8(self.stdout).map_err(io::Error::other)
    }
}

/// No answer that ibprov asks for comes near this, bytes of each pipe: systemd's on all
/// units of a large host is some MiB.
const OUTPUT_LIMIT: usize = 64 << 20;

/// How long a program that was killed may take to end.
const KILLED: Duration = Duration::from_secs(2);

/// Run a program that answers soon, and kill it with all that it started if it has not ended
/// by `until`. One that sleeps uninterruptibly then is left to the
/// kernel.
///
/// # Errors
/// It is missing, cannot be started or waited for, or says more than 64 MiB.
pub fn output_until(name: &str, args: &[&str], until: Moment) -> io::Result<Output> {
    output_of(&installed(name)?, name, args, until)
}

/// As [`output_until`], of this program itself.
///
/// # Errors
/// As [`output_until`].
pub fn own_output_until(args: &[&str], until: Moment) -> io::Result<Output> {
    output_of(Path::new(SELF), "ibprov", args, until)
}

fn output_of(program: &Path, name: &str, args: &[&str], until: Moment) -> io::Result<Output> {
    let streams = [Stdio::null(), Stdio::piped(), Stdio::piped()];
    let child = spawn(program, args, Environment::Safe, streams);
    let mut child = child.map_err(|e| {
        io::Error::other(format!(
            "cannot run {} {}: {}",
            program.display(),
            args.join(" "),
            answer(&e)
        ))
    })?;
    let failed = |e| io::Error::other(format!("{name} {}: {}", args.join(" "), answer(&e)));
    let read = read_both(&mut child, until);
    let is_read = matches!(read, Ok((_, _, true)));
    let mut status = if is_read { wait_until(&mut child, until).map_err(failed)? } else { None };
    let ended = status.is_some();
    if !ended {
        kill_group(&child).map_err(failed)?;
        let until = clock::now() + KILLED;
        status = wait_until(&mut child, until).map_err(failed)?;
    }
    let (stdout, stderr, _) = read.map_err(failed)?;
    Ok(Output {
        ended,
        left: status.is_none().then(|| child.id()),
        failure: status.and_then(Failure::of),
        stdout,
        stderr: String::from_utf8_lossy(&stderr).trim().to_owned(),
    })
}

/// What a shell does before the program: the lock that is its standard input stays with it
/// under another number, neither a terminal nor who stops its unit nor a reader that has gone
/// ends it, and its output is at most 64 MiB.
const UNDISTURBED: &str =
    "exec 3<&0 </dev/null; trap '' HUP TERM PIPE XFSZ; ulimit -f 131072; exec setsid \"$@\"";

/// Run `program`, which may not be ended: one that runs at `until` is left
/// alone. It has a session of its own and holds `lock` for as long as it runs, whatever becomes
/// of this process. Both its outputs are files that have no name, of which no more than 4 MiB
/// and 16 KiB are kept.
///
/// # Errors
/// It cannot be started or waited for.
pub(super) fn output_unkilled(
    program: &Path,
    args: &[String],
    lock: &mut Held,
    until: Moment,
) -> io::Result<Output> {
    let file = |name| memfd_create(name, MFdFlags::MFD_CLOEXEC).map(File::from);
    let (mut stdout, mut stderr) = (file(c"stdout")?, file(c"stderr")?);
    let mut all: Vec<&OsStr> = vec![OsStr::new("-c"), OsStr::new(UNDISTURBED), OsStr::new("sh")];
    all.push(program.as_os_str());
    all.extend(args.iter().map(OsStr::new));
    let streams =
        [Stdio::from(lock.share()?), Stdio::from(stdout.try_clone()?), stderr.try_clone()?.into()];
    let mut child = spawn(&installed("sh")?, &all, Environment::SafeHere, streams)?;
    lock.set_owner(child.id());
    let status = wait_until(&mut child, until)?;
    Ok(Output {
        ended: status.is_some(),
        left: status.is_none().then(|| child.id()),
        failure: status.and_then(Failure::of),
        stdout: kept(Some(&mut stdout), 4 << 20)?.into_bytes(),
        stderr: kept(Some(&mut stderr), 16 << 10)?,
    })
}

/// How `child` ended; none if it has not by `until`.
fn wait_until(child: &mut Child, until: Moment) -> io::Result<Option<ExitStatus>> {
    let (mut ended, theirs) = UnixStream::pair()?;
    ended.set_nonblocking(true)?;
    let registered = signal_hook::low_level::pipe::register(SIGCHLD, theirs)?;
    let status = loop {
        match child.try_wait() {
            Ok(None) => {}
            status => break status,
        }
        if clock::now() >= until {
            break Ok(None);
        }
        if let Err(e) = clock::readable(&[ended.as_fd()], until) {
            break Err(e);
        }
        // Of whichever child: it is looked again.
        let mut buffer = [0; 64];
        while ended.read(&mut buffer).is_ok_and(|n| n > 0) {}
    };
    signal_hook::low_level::unregister(registered);
    status
}

/// What comes through both pipes until they are closed (then true) or the
/// deadline has passed.
fn read_both(child: &mut Child, until: Moment) -> io::Result<(Vec<u8>, Vec<u8>, bool)> {
    let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("no pipes"));
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (mut out_open, mut err_open) = (true, true);
    let mut buffer = [0_u8; 8192];
    while out_open || err_open {
        if out.len().max(err.len()) > OUTPUT_LIMIT {
            return Err(io::Error::other(format!(
                "the program printed more than {} MiB",
                OUTPUT_LIMIT >> 20
            )));
        }
        if clock::now() >= until {
            return Ok((out, err, false));
        }
        let out_fd = out_open.then(|| stdout.as_fd());
        let err_fd = err_open.then(|| stderr.as_fd());
        let fds: Vec<_> = out_fd.into_iter().chain(err_fd).collect();
        let mut ready = clock::readable(&fds, until)?.into_iter();
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
        let until = clock::now() + Duration::from_secs(20);
        let out = output_until("sh", &["-c", script], until).expect("sh");
        let failure = out.failure.as_ref().map(ToString::to_string);
        assert_eq!((out.ended, failure.as_deref()), (true, Some("exit status: 3")));
        assert_eq!((out.stdout.len(), out.stderr.len()), (200_000, 200_000));
        let e = out.into_text("sh", &["-c", "x"]).expect_err("it failed");
        assert!(e.to_string().starts_with("sh -c x: exit status: 3: "), "{e}");
    }

    #[test]
    fn a_program_that_does_not_answer_is_ended_at_the_deadline() {
        let begin = clock::now();
        let out =
            output_until("sleep", &["60"], begin + Duration::from_millis(100)).expect("sleep");
        assert!(!out.ended && clock::now() < begin + Duration::from_secs(20));
        assert!(out.into_text("sleep", &["60"]).is_err());
    }

    #[test]
    fn a_program_that_says_no_more_and_does_not_end_is_ended_at_the_deadline() {
        let begin = clock::now();
        let script = "echo $$; exec >&- 2>&-; sleep 60";
        let out =
            output_until("sh", &["-c", script], begin + Duration::from_millis(200)).expect("sh");
        assert!(clock::now() < begin + Duration::from_secs(20));
        assert_eq!((out.ended, out.left), (false, None));
        assert!(out.failure.is_some_and(|failure| failure.is_by_signal()));
        assert!(!out.stdout.is_empty());
    }

    #[test]
    fn a_child_that_does_not_end_is_waited_for_until_the_deadline() {
        let begin = clock::now();
        let sleep = find("sleep").expect("sleep");
        let streams = [Stdio::null(), Stdio::null(), Stdio::null()];
        let mut child = spawn(&sleep, &["60"], Environment::Safe, streams).expect("sleep");
        assert_eq!(
            wait_until(&mut child, begin + Duration::from_millis(100)).expect("a wait"),
            None
        );
        assert!(clock::now() >= begin + Duration::from_millis(100));
        kill_group(&child).expect("a signal");
        let status = wait_until(&mut child, begin + Duration::from_secs(20)).expect("a wait");
        assert_eq!(status.and_then(|status| status.signal()), Some(9));
    }

    #[test]
    fn what_it_has_started_is_ended_with_it() {
        // One that waits for it, and one that ends and leaves it with the pipe.
        for script in ["sleep 60 & echo $!; wait", "sleep 60 & echo $!"] {
            // A busy machine may not have started it by the first deadlines.
            let run = |msec| {
                let until = clock::now() + Duration::from_millis(msec);
                let out = output_until("sh", &["-c", script], until).expect("sh");
                assert!(!out.ended);
                (!out.stdout.is_empty()).then_some(out)
            };
            let out = [300, 3_000, 30_000].into_iter().find_map(run).expect("a number");
            let left = String::from_utf8(out.stdout).expect("a number");
            let stat = format!("/proc/{}/stat", left.trim());
            let until = clock::now() + Duration::from_secs(20);
            // Gone, or waiting for init to look at it.
            while std::fs::read_to_string(&stat).is_ok_and(|s| !s.contains(") Z")) {
                assert!(clock::now() < until, "process {left} is still there");
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn nobody_who_started_us_has_a_say_in_what_a_program_does() {
        let until = clock::now() + Duration::from_secs(20);
        let run = |name, args: &[&str]| {
            let out = output_until(name, args, until).and_then(|o| o.into_text(name, args));
            out.unwrap_or_else(|e| panic!("{e}"))
        };
        // Cargo has set much more for this process.
        assert_eq!(run("env", &[]), "LC_ALL=C\nPATH=/usr/sbin:/sbin:/usr/bin:/bin\n");
        assert_eq!(run("pwd", &[]), "/\n");
        let group = run("sh", &["-c", "echo $$ $(ps -o pgid= -p $$)"]);
        let (pid, pgid) = group.trim().split_once(' ').expect("two numbers");
        assert_eq!(pid, pgid);
    }

    #[test]
    fn a_child_of_our_kind_does_not_tell_systemd_of_itself() {
        let own = command(Path::new(SELF), &["x"], Environment::Ours);
        let unset = (OsStr::new("NOTIFY_SOCKET"), None);
        assert!(own.get_envs().any(|variable| variable == unset), "{own:?}");
    }

    #[test]
    fn a_lock_whose_owner_cannot_be_written_is_no_reason_not_to_see_a_child_to_its_end() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let sleep = find("sleep").expect("sleep");
        let unwritable = || Held::unwritable(&dir.path().join("lock"));
        let mut running = start(&sleep, &["60".to_owned()], Some(unwritable())).expect("it runs");
        running.kill().expect("a signal");
        let until = clock::now() + Duration::from_secs(20);
        let said = output_unkilled(&sleep, &["0".to_owned()], &mut unwritable(), until);
        assert!(said.expect("it runs").ended);
    }

    #[test]
    fn a_process_of_this_program_is_found_by_what_it_was_started_with() {
        // As this program is started, by its path; the name is the kernel's.
        let dir = tempfile::tempdir().expect("temporary directory");
        let program = dir.path().join("exe");
        std::os::unix::fs::symlink(find("sh").expect("sh"), &program).expect("a link");
        let args = ["-c".to_owned(), "echo; read line; exit 37".to_owned()];
        let mut shell = Command::new(program);
        let shell = shell.arg0(SELF).args(&args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().expect("sh");
        // By then the kernel shows its name and its words.
        let mut begun = [0];
        child.stdout.take().expect("a pipe").read_exact(&mut begun).expect("a word");
        for known in [None, Some(child.id())] {
            let found = own_process(&args, known).expect("found");
            assert_eq!(found.pid, child.id());
            assert!(found.age < Duration::from_secs(600), "{found:?}");
        }
        assert_eq!(own_process(&args, Some(std::process::id())), None);
        assert_eq!(own_process(&args[..1], None), None);
        child.kill().expect("a signal");
        child.wait().expect("an end");
        assert_eq!(own_process(&args, None), None);
    }

    #[test]
    fn a_program_that_never_stops_talking_is_ended() {
        let until = clock::now() + Duration::from_secs(60);
        let e = output_until("cat", &["/dev/zero"], until).expect_err("too much");
        assert_eq!(e.to_string(), "cat /dev/zero: the program printed more than 64 MiB");
    }

    #[test]
    fn a_stream_that_nobody_reads_any_more_is_ended() {
        let sh = find("sh").expect("sh");
        let mut stream =
            start_streaming(&sh, &["-c", "sleep 60 & echo first; wait"], Stdio::null(), None)
                .expect("sh");
        let mut first = [0; 6];
        stream.read_exact(&mut first).expect("a line");
        assert_eq!(&first, b"first\n");
        let begin = clock::now();
        drop(stream);
        assert!(clock::now() < begin + Duration::from_secs(20));
    }

    #[test]
    fn in_a_cage_a_program_is_nobody_and_has_little_memory() {
        let sh = find("sh").expect("sh");
        let cage = Cage { address_space: 64 << 20, as_nobody: true };
        let script = "id -u; id -g; id -G; ulimit -v; ulimit -c";
        let mut stream =
            start_streaming(&sh, &["-c", script], Stdio::null(), Some(cage)).expect("sh");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("text");
        assert_eq!(said, "65534\n65534\n65534\n65536\n0\n", "tests run as root");
    }
}
