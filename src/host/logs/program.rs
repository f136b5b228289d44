//! Programs of the host that read what is no text: journalctl, xz, zstd, bzip2. What
//! they read may have been made to do harm, so they get little memory, and where this is
//! root not its rights.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use super::super::process::{Cage, NOBODY};
use super::super::{answer, process};
use crate::names::Moment;

#[derive(Debug)]
pub(in crate::host) struct Piped {
    stream: process::Streaming,
    program: String,
}

/// What a decompressor may take: xz -9 needs 65 MiB, zstd -19 8 MiB, bzip2 -9 4 MiB, and
/// a file that was made to do harm asks for 4 GiB.
const MEMORY: u64 = 256 << 20;

/// journalctl maps the file, in windows that come to half of this.
const JOURNAL_MEMORY: u64 = 768 << 20;

/// What `program` expands `packed` to.
pub(in crate::host) fn expander(program: &str, packed: File) -> Result<Piped, String> {
    let args: &[&str] = match program {
        "xz" => &["-dc", "--threads=1", "--memlimit-decompress=100MiB"],
        "zstd" => &["-dc", "--memory=100MiB"],
        _ => &["-dc"],
    };
    let cage = Cage { address_space: MEMORY, as_nobody: true };
    piped(program, args, Stdio::from(packed), Some(cage))
}

/// What journalctl, with these `args`, says of a journal that may be anybody's. The file
/// is handed over open, as its name may mean another by now; but journalctl opens it
/// anew, so only where nobody may do that is it nobody.
pub(super) fn journal_of(file: File, args: &[&str]) -> Result<Piped, String> {
    let is_open = |meta: &Metadata| meta.uid() == NOBODY || meta.mode() & 0o004 != 0;
    let as_nobody = file.metadata().is_ok_and(|meta| is_open(&meta));
    let args: Vec<&str> = args.iter().copied().chain(["--file=/proc/self/fd/0"]).collect();
    let cage = Cage { address_space: JOURNAL_MEMORY, as_nobody };
    piped("journalctl", &args, Stdio::from(file), Some(cage))
}

/// Run `program` of the system's own directories.
pub(super) fn piped(
    program: &str,
    args: &[&str],
    stdin: Stdio,
    cage: Option<Cage>,
) -> Result<Piped, String> {
    let path = process::find(program).ok_or_else(|| match package(program) {
        Some(package) => format!("{program} is not installed: install the package {package}"),
        None => format!("{program} is not installed"),
    })?;
    let stream = process::start_streaming(&path, args, stdin, cage)
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
    /// Read no longer than until `until`.
    pub(super) fn until(self, until: Moment) -> Self {
        Self { stream: self.stream.until(until), program: self.program }
    }

    /// Wait for its end; a sentence if it failed.
    pub(in crate::host) fn ended(self) -> Result<(), String> {
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
