#![allow(clippy::disallowed_methods, reason = "the one place where programs are run")]

//! Running other programs. Whatever can sleep uninterruptibly goes here: a
//! child in that state cannot be killed, but it delays nobody.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::clock;
use super::lock::Held;

/// A program that is running.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stderr: File,
    /// When it was started, microseconds of CLOCK_MONOTONIC.
    pub started_usec: u64,
    /// What was run, for messages.
    pub command_line: String,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// `exit status: 1` or `signal: 9 (SIGKILL)`; empty if it succeeded.
    pub failure: String,
    /// What it wrote to standard error, at most 16 KiB.
    pub stderr: String,
    /// How long it ran, microseconds.
    pub took_usec: u64,
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
        .stdout(Stdio::null())
        .stderr(Stdio::from(stderr.try_clone()?));
    let child = command.spawn()?;
    if let Some(mut held) = lock {
        held.set_owner(child.id())?;
    }
    let command_line = std::iter::once(program.display().to_string())
        .chain(args.iter().cloned())
        .collect::<Vec<_>>()
        .join(" ");
    Ok(Running { child, stderr, started_usec: clock::monotonic_usec(), command_line })
}

impl Running {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn ended(&mut self) -> io::Result<Option<Ended>> {
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        let mut stderr = Vec::new();
        self.stderr.rewind()?;
        (&self.stderr).take(16 * 1024).read_to_end(&mut stderr)?;
        Ok(Some(Ended {
            failure: if status.success() { String::new() } else { status.to_string() },
            stderr: String::from_utf8_lossy(&stderr).trim().to_owned(),
            took_usec: clock::monotonic_usec().saturating_sub(self.started_usec),
        }))
    }
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
