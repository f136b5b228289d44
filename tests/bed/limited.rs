//! A program that ends by itself, or is ended after a time that no step of the host's clock
//! changes.

use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// How long a program may take to answer what it is asked at its limit.
const ANSWER: Duration = Duration::from_secs(5);

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// How it left.
    pub(crate) status: ExitStatus,
    /// Its standard output and error, as they came.
    pub(crate) output: String,
    /// It had not ended by its limit, and was killed.
    pub(crate) late: bool,
}

/// Runs `command` until it ends. After `limit`, or at the time of `begun` if it has not begun by
/// then, `question` is written to its standard input, and soon after it is killed.
pub(crate) fn run(
    command: &mut Command,
    limit: Duration,
    question: &str,
    (begun, has_begun): (Duration, &dyn Fn() -> bool),
) -> io::Result<Ended> {
    let start = Instant::now();
    let (mut reader, writer) = io::pipe()?;
    let mut child = command
        .stdin(if question.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    // The child alone has the write ends now, so that its end is that of the output.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut output = Vec::new();
    let late = !read_until(&mut reader, &mut output, start + begun.min(limit))?
        && (!has_begun() || !read_until(&mut reader, &mut output, start + limit)?);
    if late {
        if let Some(stdin) = &mut child.stdin {
            stdin.write_all(question.as_bytes())?;
            read_until(&mut reader, &mut output, Instant::now() + ANSWER)?;
        }
        child.kill()?;
    }
    let status = child.wait()?;
    Ok(Ended { status, output: String::from_utf8_lossy(&output).into_owned(), late })
}

/// Reads to the end; false if that has not come at `until`.
fn read_until(reader: &mut PipeReader, output: &mut Vec<u8>, until: Instant) -> io::Result<bool> {
    let mut chunk = [0; 4096];
    loop {
        // Rounded up: what is left of the last millisecond is waited for too.
        let left = until.saturating_duration_since(Instant::now()).as_millis() + 1;
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, left)? {
            0 if Instant::now() >= until => return Ok(false),
            0 => continue,
            _ => {}
        }
        match reader.read(&mut chunk)? {
            0 => return Ok(true),
            n => output.extend_from_slice(chunk.get(..n).unwrap_or_default()),
        }
    }
}
