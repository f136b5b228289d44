//! Programs of the host that read what is no text: journalctl, xz, zstd, bzip2.

use std::io::{self, Read};
use std::process::Stdio;

use super::super::{answer, process};

/// A running program's output.
#[derive(Debug)]
pub(super) struct Piped {
    stream: process::Streaming,
    program: String,
}

/// Run `program` of the system's own directories.
pub(super) fn piped(program: &str, args: &[&str], stdin: Stdio) -> Result<Piped, String> {
    let path = process::find(program).ok_or_else(|| match package(program) {
        Some(package) => format!("{program} is not installed: it is in the package {package}"),
        None => format!("{program} is not installed"),
    })?;
    let stream = process::start_streaming(&path, args, stdin)
        .map_err(|e| format!("{program}: {}", answer(&e)))?;
    Ok(Piped { stream, program: program.to_owned() })
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
    pub(super) fn ended(self) -> Result<(), String> {
        let Self { stream, program } = self;
        match stream.ended() {
            Ok(None) => Ok(()),
            Ok(Some(failure)) => Err(format!("{program}: {failure}")),
            Err(e) => Err(format!("{program}: {}", answer(&e))),
        }
    }
}

impl Read for Piped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}
