#![allow(
    clippy::disallowed_methods,
    reason = "the door to logs, which are anywhere, and to journalctl"
)]

//! Logs as streams of bytes, wherever they are: files, standard input,
//! directories, tar archives, compressed ones, journals.
//!
//! What an archive or a directory holds is hostile: no link leads out of it, no
//! name is used but to be printed, nothing is unpacked to disk.

mod format;
mod program;
mod wide;

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;

use flate2::read::MultiGzDecoder;

use self::format::{Magic, is_binary, is_log};
use self::program::piped;
use self::wide::Wide;
use super::{Root, answer, errno_name};

/// Gets each stream with its name.
pub type Sink<'a> = &'a mut dyn FnMut(&str, &mut dyn Read);

/// Archives in archives are opened this deep.
const DEPTH: u32 = 3;
/// Files taken of one tree or archive.
const FILES: usize = 20_000;
/// Bytes taken of one compressed stream: a small file can expand without end.
const EXPANDED: u64 = 64 << 30;
/// Bytes that are put aside for a program that must seek in them.
const SPOOLED: u64 = 4 << 30;
/// As much as is needed to know a format by its magic.
const HEAD: usize = 512;

/// What the journal's fields are asked for; what `check` reads, and no more. In
/// the export form, which costs journalctl a third of what JSON does.
const FIELDS: &str = "--output-fields=MESSAGE,SYSLOG_IDENTIFIER,_COMM,UNIT,_SYSTEMD_UNIT,_BOOT_ID";

/// Give every stream that `path` holds to `sink`; `-` is standard input. What
/// could not be read comes back, one sentence each.
pub fn read(path: &Path, sink: Sink<'_>) -> Vec<String> {
    let name = path.display().to_string();
    let mut feed = Feed { sink, problems: Vec::new(), files: 0 };
    if name == "-" {
        // Standard input as a file: a journal must be sought in.
        match File::open("/dev/stdin") {
            Ok(file) => feed.file("standard input", file, DEPTH),
            Err(_) => feed.stream("standard input", &mut io::stdin(), DEPTH),
        }
        return feed.problems;
    }
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => match Root::copy_at(path) {
            Ok(root) => feed.tree(&root, "", 0),
            Err(e) => feed.problems.push(e.to_string()),
        },
        Ok(_) => match File::options().read(true).custom_flags(nix::libc::O_NOCTTY).open(path) {
            Ok(file) => feed.file(&name, file, DEPTH),
            Err(e) => feed.problems.push(format!("{name}: {}", answer(&e))),
        },
        Err(e) => feed.problems.push(format!("{name}: {}", answer(&e))),
    }
    feed.problems
}

/// Give the logs of the system below `root` to `sink`: its journals, or the
/// files of a syslog daemon, and what opensm and libvirt wrote.
pub fn of_system(root: &Root, sink: Sink<'_>) -> Vec<String> {
    let mut feed = Feed { sink, problems: Vec::new(), files: 0 };
    for place in ["/var/log", "/run/log"] {
        if root.exists(place) {
            feed.tree(root, place, 0);
        }
    }
    feed.problems
}

/// The journal of the running system: of its `boot`, counted as journalctl
/// does (0 is this one).
///
/// # Errors
/// A sentence.
pub fn journal(boot: i32, sink: Sink<'_>) -> Result<(), String> {
    let boot = format!("--boot={boot}");
    let args = ["-o", "export", "--no-pager", "--quiet", "--all", FIELDS, boot.as_str()];
    let mut stream = piped("journalctl", &args, Stdio::null()).map_err(|e| e.to_string())?;
    sink("journal", &mut stream);
    stream.ended()
}

struct Feed<'a> {
    sink: Sink<'a>,
    problems: Vec<String>,
    files: usize,
}

impl Feed<'_> {
    fn file(&mut self, name: &str, mut file: File, depth: u32) {
        let mut head = [0; 8];
        let is_journal = file.read_exact(&mut head).is_ok() && &head == b"LPKSHHRH";
        if file.rewind().is_err() {
            // A pipe: what was read of it is put before the rest.
            self.stream(name, &mut Cursor::new(head).chain(file), depth);
        } else if is_journal {
            self.journal(name, file);
        } else {
            self.stream(name, &mut file, depth);
        }
    }

    fn journal(&mut self, name: &str, file: File) {
        // The file is handed over open: its name may mean another by now.
        let args =
            ["-o", "export", "--no-pager", "--quiet", "--all", FIELDS, "--file=/proc/self/fd/0"];
        match piped("journalctl", &args, Stdio::from(file)) {
            Ok(mut stream) => {
                (self.sink)(name, &mut stream);
                if let Err(e) = stream.ended() {
                    self.problems.push(format!("{name}: {e}"));
                }
            }
            Err(e) => self.problems.push(format!("{name}: it is a journal, and {e}")),
        }
    }

    fn stream(&mut self, name: &str, mut stream: &mut dyn Read, depth: u32) {
        let mut head = Vec::with_capacity(HEAD);
        if let Err(e) = (&mut stream).take(HEAD as u64).read_to_end(&mut head) {
            self.problems.push(format!("{name}: {}", answer(&e)));
            return;
        }
        let magic = Magic::of(&head);
        let mark = match magic {
            Magic::Marked => 3,
            Magic::Wide(_) => 2,
            _ => 0,
        };
        let packed = !matches!(magic, Magic::Text | Magic::Marked | Magic::Wide(_));
        if packed && depth == 0 {
            self.problems.push(format!("{name}: an archive in an archive in an archive; not read"));
            return;
        }
        head.drain(..mark.min(head.len()));
        let mut whole = Cursor::new(head).chain(stream);
        match magic {
            Magic::Text | Magic::Marked => (self.sink)(name, &mut whole),
            Magic::Wide(big_endian) => (self.sink)(name, &mut Wide::new(whole, big_endian)),
            Magic::Gzip => {
                let mut stream = MultiGzDecoder::new(whole).take(EXPANDED);
                self.stream(name, &mut stream, depth - 1);
            }
            Magic::Tar => self.archive(name, whole, depth - 1),
            Magic::Journal => self.spooled(name, &mut whole),
            Magic::Other(program) => self.expanded(name, &mut whole, program, depth),
        }
    }

    /// A journal within an archive: journalctl must be able to seek in it, and
    /// refuses a file that has no name.
    fn spooled(&mut self, name: &str, stream: &mut dyn Read) {
        let template = std::env::temp_dir().join("ibprov-journal-XXXXXX");
        let (fd, path) = match nix::unistd::mkstemp(&template) {
            Ok(made) => made,
            Err(errno) => {
                self.problems.push(format!("{name}: no room to unpack it: {}", errno_name(errno)));
                return;
            }
        };
        let mut file = File::from(fd);
        match io::copy(&mut stream.take(SPOOLED), &mut file).and_then(|_| file.rewind()) {
            Ok(()) => self.journal(name, file),
            Err(e) => {
                self.problems.push(format!("{name}: no room to unpack it: {}", answer(&e)));
            }
        }
        if let Err(e) = std::fs::remove_file(&path) {
            self.problems.push(format!("{}: {}", path.display(), answer(&e)));
        }
    }

    /// What another program expands: `xz -dc` and its like. It reads from a
    /// file, so that no thread is needed to feed it.
    fn expanded(&mut self, name: &str, stream: &mut dyn Read, program: &str, depth: u32) {
        let file = match put_aside(stream) {
            Ok(file) => file,
            Err(e) => {
                self.problems.push(format!("{name}: no room to unpack it: {}", answer(&e)));
                return;
            }
        };
        match piped(program, &["-dc"], Stdio::from(file)) {
            Ok(mut output) => {
                self.stream(name, &mut (&mut output).take(EXPANDED), depth - 1);
                // One that is not read to its end is ended, which is no failure
                // of its own; a damaged file is.
                let all = output.read(&mut [0]).is_ok_and(|n| n == 0);
                if let (true, Err(e)) = (all, output.ended()) {
                    self.problems.push(format!("{name}: cut off or damaged: {e}"));
                }
            }
            Err(e) => self.problems.push(format!("{name}: {e}")),
        }
    }

    fn archive(&mut self, name: &str, stream: impl Read, depth: u32) {
        let mut archive = tar::Archive::new(stream);
        let entries = match archive.entries() {
            Ok(entries) => entries,
            Err(e) => {
                self.problems.push(format!("{name}: {e}"));
                return;
            }
        };
        for entry in entries {
            let mut entry = match entry {
                Ok(entry) => entry,
                Err(e) => {
                    // What follows a bad header cannot be found.
                    self.problems.push(format!("{name}: {e}"));
                    return;
                }
            };
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let name_there = printable(&format!("{name}:{path}"));
            let mut head = Vec::with_capacity(HEAD);
            if !is_log(&path) || !self.count(name) {
                continue;
            }
            match (&mut entry).take(HEAD as u64).read_to_end(&mut head) {
                Ok(_) if is_binary(&head) => {}
                Ok(_) => self.stream(&name_there, &mut Cursor::new(head).chain(entry), depth),
                Err(e) => self.problems.push(format!("{name_there}: {}", answer(&e))),
            }
        }
    }

    fn tree(&mut self, root: &Root, dir: &str, level: u32) {
        /// Directories below directories.
        const LEVELS: u32 = 24;
        let here = if dir.is_empty() { "/" } else { dir };
        let names = match root.list(here) {
            Ok(names) => names,
            Err(e) => {
                self.problems.push(e.to_string());
                return;
            }
        };
        for name in names {
            let path = format!("{dir}/{name}");
            // A symbolic link is passed over: what it names is met elsewhere.
            if root.link_name(&path).is_ok() || !is_log(&path) {
                continue;
            }
            match root.file(&path) {
                Ok(file) if file.metadata().is_ok_and(|m| m.is_dir()) => {
                    if level < LEVELS {
                        self.tree(root, &path, level + 1);
                    }
                }
                Ok(file) if file.metadata().is_ok_and(|m| m.is_file() && m.len() > 0) => {
                    if self.count(&path) {
                        let name = root.path().join(path.trim_start_matches('/'));
                        self.member(&printable(&name.display().to_string()), file);
                    }
                }
                Ok(_) => {}
                Err(e) => self.problems.push(e.to_string()),
            }
        }
    }

    /// A file of a tree, unless it is binary.
    fn member(&mut self, name: &str, mut file: File) {
        let mut head = [0; HEAD];
        let read = file.read(&mut head).unwrap_or(0);
        let head = head.get(..read).unwrap_or_default();
        if is_binary(head) || file.rewind().is_err() {
            return;
        }
        self.file(name, file, DEPTH);
    }

    fn count(&mut self, name: &str) -> bool {
        self.files += 1;
        if self.files == FILES + 1 {
            self.problems.push(format!("{name}: more than {FILES} files; the rest was not read"));
        }
        self.files <= FILES
    }
}

/// The bytes of `stream` in a file that has no name.
fn put_aside(stream: &mut dyn Read) -> io::Result<File> {
    let flags =
        nix::fcntl::OFlag::O_TMPFILE | nix::fcntl::OFlag::O_RDWR | nix::fcntl::OFlag::O_CLOEXEC;
    let mode = nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR;
    let mut file = File::from(nix::fcntl::open(&std::env::temp_dir(), flags, mode)?);
    io::copy(&mut stream.take(SPOOLED), &mut file)?;
    file.rewind()?;
    Ok(file)
}

/// A hostile name as it may be printed.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests;
