//! Programs of the host that read what is no text: journalctl, xz, zstd, bzip2.
#![allow(clippy::disallowed_methods, reason = "these are run here")]

use std::io::{self, Read};
use std::process::{Command, Stdio};

use super::super::{answer, process};

/// A running program's output.
#[derive(Debug)]
pub(super) struct Piped {
    child: std::process::Child,
    program: String,
}

/// Run `program` of the system's own directories.
pub(super) fn piped(program: &str, args: &[&str], stdin: Stdio) -> Result<Piped, String> {
    let path = process::find(program).ok_or_else(|| match package(program) {
        Some(package) => format!("{program} is not installed: it is in the package {package}"),
        None => format!("{program} is not installed"),
    })?;
    let child = Command::new(path)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("{program}: {}", answer(&e)))?;
    Ok(Piped { child, program: program.to_owned() })
}

/// The package that has `program`, where its name says less.
fn package(program: &str) -> Option<&'static str> {
    match program {
        "xz" => Some("xz-utils (Debian, Ubuntu) or xz"),
        "zstd" => Some("zstd"),
        "bzip2" => Some("bzip2"),
        _ => None,
    }
}

impl Piped {
    /// Wait for its end; a sentence if it failed.
    pub(super) fn ended(mut self) -> Result<(), String> {
        drop(self.child.stdout.take());
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{}: {status}", self.program)),
            Err(e) => Err(format!("{}: {}", self.program, answer(&e))),
        }
    }
}

impl Read for Piped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.child.stdout.as_mut().map_or(Ok(0), |out| out.read(buffer))
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        // A reader that stops early must not leave the writer behind; it ends by
        // SIGPIPE. Nobody is left to tell if it cannot be waited for.
        drop(self.child.stdout.take());
        drop(self.child.wait());
    }
}
