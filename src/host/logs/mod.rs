#![allow(
    clippy::disallowed_methods,
    reason = "the door to logs, which are anywhere, and to journalctl"
)]

//! Logs as streams of bytes, wherever they are: files, standard input,
//! directories, tar archives, compressed ones, journals.
//!
//! What an archive or a directory holds is hostile: no link leads out of it, no
//! name is used but to be printed, nothing is unpacked under its name, and no header
//! decides how much memory is taken.

pub(super) mod format;
pub(super) mod program;

use crate::names::{Moment, harmless};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use self::format::{Magic, is_binary, is_log};
use self::program::{Piped, expander, journal_of, piped};
use super::process::NOBODY;
use super::root::Kind;
use super::{Root, answer, process};

/// Gets each stream with its name.
pub type Sink<'a> = &'a mut dyn FnMut(&str, &mut dyn Read);

/// Archives in archives are opened this deep.
const DEPTH: u32 = 3;
/// Files taken of one tree or archive.
const FILES: usize = 20_000;
/// Directories taken of one tree.
const DIRECTORIES: usize = 20_000;
/// Directories below directories.
const LEVELS: u32 = 24;
/// Bytes taken of all compressed streams together: a small file can expand without end.
const EXPANDED: u64 = 64 << 30;
/// Bytes that are put aside for a program that reads from a file: journald's own files
/// are of 128 MiB at most.
const SPOOLED: u64 = 512 << 20;
/// Where they are put aside: /tmp is memory on many hosts.
const SPOOL: &str = "/var/tmp";
/// Sentences of what could not be read.
const PROBLEMS: usize = 500;
/// Bytes taken of the headers of one member of an archive.
const HEADERS: u64 = 1 << 20;
/// Characters of a member's name.
const LONGEST_NAME: usize = 300;
/// As much as is needed to know a format by its magic.
const HEAD: usize = 512;

/// What the journal's fields are asked for; what `check` reads, and no more. In
/// the export form, which costs journalctl a third of what JSON does.
const FIELDS: &str = "--output-fields=MESSAGE,SYSLOG_IDENTIFIER,_COMM,UNIT,_SYSTEMD_UNIT,_BOOT_ID,PRIORITY,MESSAGE_ID,IBPROV_EXIT";

/// Give every stream that `path` holds to `sink`; `-` is standard input. What
/// could not be read comes back, one sentence each.
pub fn read(path: &Path, sink: Sink<'_>) -> Vec<String> {
    let name = path.display().to_string();
    let mut feed = Feed::new(sink);
    if name == "-" {
        // Standard input as a file: a journal must be sought in.
        match File::open("/dev/stdin") {
            Ok(file) => feed.file("standard input", file, DEPTH),
            Err(_) => feed.stream("standard input", &mut io::stdin(), DEPTH),
        }
        return feed.finish();
    }
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => match Root::copy_at(path) {
            Ok(root) => feed.tree(&root, "", 0),
            Err(e) => feed.problem(e.to_string()),
        },
        Ok(meta) if meta.file_type().is_block_device() => {
            feed.problem(format!("{name} is a block device, not a log"));
        }
        Ok(meta) => {
            let is_pipe = meta.file_type().is_fifo();
            let flags = OFlag::O_NOCTTY | if is_pipe { OFlag::O_NONBLOCK } else { OFlag::empty() };
            match File::options().read(true).custom_flags(flags.bits()).open(path) {
                Ok(file) if is_pipe => feed.pipe(&name, file),
                Ok(file) => feed.file(&name, file, DEPTH),
                Err(e) => feed.problem(format!("{name}: {}", answer(&e))),
            }
        }
        Err(e) => feed.problem(format!("{name}: {}", answer(&e))),
    }
    if !feed.given && feed.problems.is_empty() {
        feed.problem(format!("{name} has no log in it, nor another file that check reads"));
    }
    feed.finish()
}

/// Give the logs of the system below `root` to `sink`: its journals, or the
/// files of a syslog daemon, and what opensm and libvirt wrote.
pub fn of_system(root: &Root, sink: Sink<'_>) -> Vec<String> {
    let mut feed = Feed::new(sink);
    for place in ["/var/log", "/run/log"] {
        if root.exists(place) {
            feed.tree(root, place, 0);
        }
    }
    feed.finish()
}

/// The journal of the running system: of its `boot`, counted as journalctl
/// does (0 is this one).
///
/// # Errors
/// A sentence.
pub fn journal(boot: i32, sink: Sink<'_>) -> Result<(), String> {
    let mut stream = started(boot)?;
    sink("journal", &mut stream);
    stream.ended()
}

/// The same, read no longer than until `until`. False if there is no
/// such boot.
///
/// # Errors
/// A sentence.
pub fn journal_until(boot: i32, until: Moment, sink: Sink<'_>) -> Result<bool, String> {
    let mut head = Vec::new();
    let mut stream = started(boot)?.until(until);
    if let Err(e) = (&mut stream).take(1).read_to_end(&mut head) {
        return Err(format!("journalctl: {}", answer(&e)));
    }
    // journalctl fails if there are fewer boots.
    if head.is_empty() && boot < 0 {
        return Ok(false);
    }
    sink("journal", &mut Cursor::new(head).chain(&mut stream));
    stream.ended().map(|()| true)
}

/// journalctl, that prints the journal of `boot`.
fn started(boot: i32) -> Result<Piped, String> {
    let boot = format!("--boot={boot}");
    let args = ["-o", "export", "--no-pager", "--quiet", "--all", FIELDS, boot.as_str()];
    piped("journalctl", &args, Stdio::null(), None)
}

struct Feed<'a> {
    sink: Sink<'a>,
    problems: Vec<String>,
    /// A stream was given to it.
    given: bool,
    files: usize,
    directories: usize,
    /// Directories were left out for their level.
    too_deep: bool,
    /// How much may still be expanded.
    expandable: Rc<Cell<u64>>,
}

impl<'a> Feed<'a> {
    fn new(sink: Sink<'a>) -> Self {
        let expandable = Rc::new(Cell::new(EXPANDED));
        Self {
            sink,
            problems: Vec::new(),
            given: false,
            files: 0,
            directories: 0,
            too_deep: false,
            expandable,
        }
    }

    fn problem(&mut self, what: String) {
        match self.problems.len() {
            ..PROBLEMS => self.problems.push(what),
            PROBLEMS => {
                self.problems.push("more files could not be read, and are not listed".to_owned());
            }
            _ => {}
        }
    }

    fn give(&mut self, name: &str, stream: &mut dyn Read) {
        self.given = true;
        (self.sink)(name, stream);
    }

    fn finish(mut self) -> Vec<String> {
        if self.expandable.get() == 0 {
            let limit = EXPANDED >> 30;
            self.problems.push(format!("the compressed files have more than {limit} GiB when expanded: the rest was not read"));
        }
        self.problems
    }

    fn file(&mut self, name: &str, mut file: File, depth: u32) {
        let mut head = Vec::new();
        if let Err(e) = (&mut file).take(16).read_to_end(&mut head) {
            self.problem(format!("{name}: {}", answer(&e)));
            return;
        }
        if file.rewind().is_err() {
            // A pipe: what was read of it is put before the rest.
            self.stream(name, &mut Cursor::new(head).chain(file), depth);
            return;
        }
        match Magic::of(&head) {
            Magic::Journal => self.journal(name, file),
            Magic::Other(program) => self.expanded(name, file, program, depth),
            _ => self.stream(name, &mut file, depth),
        }
    }

    /// A pipe, opened with O_NONBLOCK: to open one that nobody writes to would wait for ever.
    fn pipe(&mut self, name: &str, mut pipe: File) {
        let mut head = [0; HEAD];
        let read = match pipe.read(&mut head) {
            Ok(0) => {
                return self.problem(format!(
                    "{name} is a pipe that no process writes to: start its writer first"
                ));
            }
            Ok(read) => Ok(read),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(e) => Err(e),
        };
        let waits = |read| fcntl(&pipe, FcntlArg::F_SETFL(OFlag::empty())).map(|_| read);
        match read.and_then(|read| Ok(waits(read)?)) {
            Ok(read) => {
                let head = head.get(..read).unwrap_or_default();
                self.stream(name, &mut head.chain(pipe), DEPTH);
            }
            Err(e) => self.problem(format!("{name}: {}", answer(&e))),
        }
    }

    fn journal(&mut self, name: &str, file: File) {
        let args = ["-o", "export", "--no-pager", "--quiet", "--all", FIELDS];
        match journal_of(file, &args) {
            Ok(mut stream) => {
                self.give(name, &mut stream);
                if let Err(e) = stream.ended() {
                    self.problem(format!("{name}: {e}"));
                }
            }
            Err(e) => self.problem(format!("{name} is a journal, which needs journalctl: {e}")),
        }
    }

    fn stream(&mut self, name: &str, mut stream: &mut dyn Read, depth: u32) {
        let mut head = Vec::with_capacity(HEAD);
        if let Err(e) = (&mut stream).take(HEAD as u64).read_to_end(&mut head) {
            self.problem(format!("{name}: {}", answer(&e)));
            return;
        }
        let magic = Magic::of(&head);
        let mark = if magic == Magic::Marked { 3 } else { 0 };
        let packed = !matches!(magic, Magic::Text | Magic::Marked | Magic::Utf16);
        if packed && depth == 0 {
            self.problem(format!(
                "{name} is nested too deep in archives, and was not read: extract it first"
            ));
            return;
        }
        head.drain(..mark.min(head.len()));
        let mut whole = Cursor::new(head).chain(stream);
        match magic {
            Magic::Text | Magic::Marked => self.give(name, &mut whole),
            Magic::Utf16 => self.problem(format!(
                "{name} is UTF-16 text, and was not read: convert it: iconv -f utf-16 -t utf-8 FILE > FILE.log"
            )),
            Magic::Gzip => {
                let left = Rc::clone(&self.expandable);
                let mut stream = Metered { stream: MultiGzDecoder::new(whole), left };
                self.stream(name, &mut stream, depth - 1);
            }
            Magic::Tar => self.archive(name, whole, depth - 1),
            // Within an archive: journalctl must be able to seek in it, and refuses a file that
            // has no name.
            Magic::Journal => {
                if let Some((file, path)) = self.put_aside(name, &mut whole) {
                    self.journal(name, file);
                    self.unlink(&path);
                }
            }
            Magic::Other(program) => {
                if let Some((file, path)) = self.put_aside(name, &mut whole) {
                    self.unlink(&path);
                    self.expanded(name, file, program, depth);
                }
            }
        }
    }

    /// What another program expands: `xz -dc` and its like. It reads from a
    /// file, so that no thread is needed to feed it.
    fn expanded(&mut self, name: &str, packed: File, program: &str, depth: u32) {
        match expander(program, packed) {
            Ok(mut output) => {
                let left = Rc::clone(&self.expandable);
                self.stream(name, &mut Metered { stream: &mut output, left }, depth - 1);
                // One that is not read to its end is ended, which is no failure
                // of its own; a damaged file is.
                let all = output.read(&mut [0]).is_ok_and(|n| n == 0);
                if let (true, Err(e)) = (all, output.ended()) {
                    self.problem(format!(
                        "{name} is cut off or damaged, or needs more memory than ibprov allows: {e}. To read it: expand the file first"
                    ));
                }
            }
            Err(e) => self.problem(format!("{name}: {e}")),
        }
    }

    /// The bytes of `stream` in a file on disk, and its path.
    fn put_aside(&mut self, name: &str, stream: &mut dyn Read) -> Option<(File, PathBuf)> {
        let (fd, path) = match nix::unistd::mkstemp(&Path::new(SPOOL).join("ibprov-XXXXXX")) {
            Ok(made) => made,
            Err(errno) => {
                let why = answer(&errno.into());
                self.problem(format!(
                    "{name} cannot be unpacked: no temporary file in {SPOOL}: {why}"
                ));
                return None;
            }
        };
        let mut file = File::from(fd);
        let limit = SPOOLED >> 20;
        let why = match fill(&mut file, stream) {
            Ok(true) => return Some((file, path)),
            Ok(false) => {
                format!("the file is larger than {limit} MiB, and the rest was not unpacked")
            }
            Err(e) => format!("the file cannot be unpacked in {SPOOL}: {}", answer(&e)),
        };
        self.problem(format!("{name}: {why}"));
        self.unlink(&path);
        None
    }

    fn unlink(&mut self, path: &Path) {
        if let Err(e) = std::fs::remove_file(path) {
            self.problem(format!("{}: {}", path.display(), answer(&e)));
        }
    }

    fn archive(&mut self, name: &str, stream: impl Read, depth: u32) {
        // The crate holds all of an extension header, whatever length that claims.
        let left = Rc::new(Cell::new(HEADERS));
        let mut archive = tar::Archive::new(Metered { stream, left: Rc::clone(&left) });
        let rest = |e| format!("{name}: the rest of the archive was not read: {}", answer(&e));
        let members = match archive.entries() {
            Ok(members) => members,
            Err(e) => return self.problem(rest(e)),
        };
        for member in members {
            let mut member = match member {
                Ok(member) => member,
                Err(e) => return self.problem(rest(e)),
            };
            let (kind, path) = (member.header().entry_type(), member.path_bytes());
            let path = String::from_utf8_lossy(&path).into_owned();
            let content = match kind.is_gnu_sparse() {
                // Its holes are not in the archive.
                true => member.header().entry_size().unwrap_or(0),
                false => member.size(),
            };
            left.set(content.saturating_add(HEADERS));
            let is_file = (kind.is_file() || kind.is_contiguous()) && !path.ends_with('/');
            if !is_file || !is_log(&path) || !self.count(name) {
                continue;
            }
            let name_there = printable(&format!("{name}:{path}"));
            let mut head = Vec::with_capacity(HEAD);
            match (&mut member).take(HEAD as u64).read_to_end(&mut head) {
                Ok(_) if is_binary(&head) => {}
                Ok(_) => self.stream(&name_there, &mut Cursor::new(head).chain(member), depth),
                Err(e) => self.problem(format!("{name_there}: {}", answer(&e))),
            }
        }
    }

    /// The directory `dir` of `root`, at this level below where it began.
    fn tree(&mut self, root: &Root, dir: &str, level: u32) {
        let here = if dir.is_empty() { "/" } else { dir };
        let names = match root.list(here) {
            Ok(names) => names,
            Err(e) => {
                self.problem(e.to_string());
                return;
            }
        };
        let top = root.path().display().to_string();
        for name in names {
            let path = format!("{dir}/{name}");
            if !is_log(&path) {
                continue;
            }
            match root.kind(&path) {
                Ok(Kind::Directory) => {
                    if self.enters(&top, level + 1) {
                        self.tree(root, &path, level + 1);
                    }
                }
                Ok(Kind::File) => match root.file(&path) {
                    Ok(file) if file.metadata().is_ok_and(|m| m.len() > 0) => {
                        if self.count(&top) {
                            let name = root.path().join(path.trim_start_matches('/'));
                            self.member(&printable(&name.display().to_string()), file);
                        }
                    }
                    Ok(_) => {}
                    Err(e) => self.problem(e.to_string()),
                },
                // What a link names is met elsewhere.
                Ok(Kind::Link | Kind::Other(_)) => {}
                Err(e) => self.problem(e.to_string()),
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

    /// False if too many directories of `name` have been entered already, or too many above
    /// one at this level.
    fn enters(&mut self, name: &str, level: u32) -> bool {
        if level > LEVELS {
            if !std::mem::replace(&mut self.too_deep, true) {
                self.problem(format!(
                    "{name} has more than {LEVELS} levels of directories: those below were not read"
                ));
            }
            return false;
        }
        self.directories += 1;
        if self.directories == DIRECTORIES + 1 {
            self.problem(format!(
                "{name} has more than {DIRECTORIES} directories: the rest was not read"
            ));
        }
        self.directories <= DIRECTORIES
    }

    fn count(&mut self, name: &str) -> bool {
        self.files += 1;
        if self.files == FILES + 1 {
            self.problem(format!("{name} has more than {FILES} files: the rest was not read"));
        }
        self.files <= FILES
    }
}

/// Copy `stream` to `file` and go to its begin; false if there is more than [`SPOOLED`].
/// Who reads it is nobody, where this is root.
fn fill(file: &mut File, stream: &mut dyn Read) -> io::Result<bool> {
    let copied = io::copy(&mut stream.take(SPOOLED + 1), file)?;
    file.rewind()?;
    if process::is_root() {
        std::os::unix::fs::fchown(&*file, Some(NOBODY), Some(NOBODY))?;
    }
    Ok(copied <= SPOOLED)
}

/// A stream that ends when all streams with the same `left` have given so many bytes.
struct Metered<R> {
    stream: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&mut self.stream).take(self.left.get()).read(buffer)?;
        self.left.set(self.left.get().saturating_sub(read as u64));
        Ok(read)
    }
}

/// A hostile name as it may be printed.
fn printable(name: &str) -> String {
    let mut name = harmless(name);
    if let Some((cut, _)) = name.char_indices().nth(LONGEST_NAME) {
        name.truncate(cut);
        name.push_str("...");
    }
    name
}

#[cfg(test)]
mod tests;
