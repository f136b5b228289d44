#![allow(
    clippy::disallowed_methods,
    reason = "the door to logs, which are anywhere, and to journalctl"
)]

//! Logs as streams of bytes, wherever they are: files, standard input,
//! directories, tar archives, compressed ones, journals.
//!
//! What an archive or a directory holds is hostile: no link leads out of it, no
//! name is used but to be printed, nothing is unpacked to disk.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::read::MultiGzDecoder;

use super::{Root, answer, errno_name, process};

/// Gets each stream with its name.
pub type Sink<'a> = &'a mut dyn FnMut(&str, &mut dyn Read);

/// Archives in archives are opened this deep.
const DEPTH: u32 = 3;
/// Files taken of one tree or archive.
const FILES: usize = 20_000;
/// Bytes taken of one compressed stream: a small file can expand without end.
const EXPANDED: u64 = 64 << 30;
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
            Err(_) => feed.stream("standard input", Box::new(io::stdin()), DEPTH),
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
            self.stream(name, Box::new(Cursor::new(head).chain(file)), depth);
        } else if is_journal {
            self.journal(name, file);
        } else {
            self.stream(name, Box::new(file), depth);
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

    fn stream(&mut self, name: &str, mut stream: Box<dyn Read>, depth: u32) {
        let mut head = Vec::with_capacity(HEAD);
        if let Err(e) = (&mut stream).take(HEAD as u64).read_to_end(&mut head) {
            self.problems.push(format!("{name}: {}", answer(&e)));
            return;
        }
        let magic = Magic::of(&head);
        let whole = Cursor::new(head).chain(stream);
        if magic != Magic::Text && depth == 0 {
            self.problems.push(format!("{name}: an archive in an archive in an archive; not read"));
            return;
        }
        match magic {
            Magic::Text => (self.sink)(name, &mut { whole }),
            Magic::Gzip => {
                let stream = MultiGzDecoder::new(whole).take(EXPANDED);
                self.stream(name, Box::new(stream), depth - 1);
            }
            Magic::Tar => self.archive(name, whole, depth - 1),
            Magic::Journal => self.spooled(name, whole),
            Magic::Other(program) => self.expanded(name, whole, program, depth),
        }
    }

    /// A journal within an archive: journalctl must be able to seek in it, and
    /// refuses a file that has no name.
    fn spooled(&mut self, name: &str, mut stream: impl Read) {
        let template = std::env::temp_dir().join("ibprov-journal-XXXXXX");
        let (fd, path) = match nix::unistd::mkstemp(&template) {
            Ok(made) => made,
            Err(errno) => {
                self.problems.push(format!("{name}: no room to unpack it: {}", errno_name(errno)));
                return;
            }
        };
        let mut file = File::from(fd);
        match io::copy(&mut stream, &mut file).and_then(|_| file.rewind()) {
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
    fn expanded(&mut self, name: &str, mut stream: impl Read, program: &str, depth: u32) {
        let mut file = match tempfile_of(&mut stream) {
            Ok(file) => file,
            Err(e) => {
                self.problems.push(format!("{name}: no room to unpack it: {}", answer(&e)));
                return;
            }
        };
        if let Err(e) = file.rewind() {
            self.problems.push(format!("{name}: {}", answer(&e)));
            return;
        }
        match piped(program, &["-dc"], Stdio::from(file)) {
            Ok(stream) => self.stream(name, Box::new(stream.take(EXPANDED)), depth - 1),
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
            let entry = match entry {
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
            if is_log(&path) && self.count(name) {
                self.entry(&printable(&format!("{name}:{path}")), entry, depth);
            }
        }
    }

    /// As [`Feed::stream`], for a stream that borrows from its archive.
    fn entry(&mut self, name: &str, mut stream: impl Read, depth: u32) {
        let mut head = Vec::with_capacity(HEAD);
        if let Err(e) = (&mut stream).take(HEAD as u64).read_to_end(&mut head) {
            self.problems.push(format!("{name}: {}", answer(&e)));
            return;
        }
        let magic = Magic::of(&head);
        let mut whole = Cursor::new(head).chain(stream);
        match magic {
            Magic::Text => (self.sink)(name, &mut whole),
            Magic::Gzip if depth > 0 => {
                self.entry_text(name, MultiGzDecoder::new(whole).take(EXPANDED));
            }
            Magic::Journal => self.spooled(name, whole),
            _ => self.problems.push(format!("{name}: an archive in an archive; not read")),
        }
    }

    fn entry_text(&mut self, name: &str, mut stream: impl Read) {
        (self.sink)(name, &mut stream);
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
        if Magic::of(head) == Magic::Text && head.contains(&0) || file.rewind().is_err() {
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

fn tempfile_of(stream: &mut impl Read) -> io::Result<File> {
    let flags =
        nix::fcntl::OFlag::O_TMPFILE | nix::fcntl::OFlag::O_RDWR | nix::fcntl::OFlag::O_CLOEXEC;
    let mode = nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR;
    let mut file = File::from(nix::fcntl::open(&std::env::temp_dir(), flags, mode)?);
    io::copy(stream, &mut file)?;
    Ok(file)
}

/// What a stream is, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Magic {
    Text,
    Gzip,
    Tar,
    Journal,
    /// The program that expands it.
    Other(&'static str),
}

impl Magic {
    fn of(head: &[u8]) -> Self {
        let is = |magic: &[u8]| head.starts_with(magic);
        if is(&[0x1f, 0x8b]) {
            Self::Gzip
        } else if is(b"LPKSHHRH") {
            Self::Journal
        } else if is(b"\xfd7zXZ\0") {
            Self::Other("xz")
        } else if is(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Self::Other("zstd")
        } else if is(b"BZh") && head.get(4..10) == Some(b"1AY&SY") {
            Self::Other("bzip2")
        } else if head.get(257..262) == Some(b"ustar") {
            Self::Tar
        } else {
            Self::Text
        }
    }
}

/// A running program's output.
#[derive(Debug)]
struct Piped {
    child: std::process::Child,
    program: String,
}

/// Run `program` of the system's own directories.
fn piped(program: &str, args: &[&str], stdin: Stdio) -> Result<Piped, String> {
    let path = process::find(program).ok_or_else(|| format!("{program} is not installed"))?;
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

impl Piped {
    /// Wait for its end; a sentence if it failed.
    fn ended(mut self) -> Result<(), String> {
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

/// True unless a file of a tree or archive is surely no log and no dump.
fn is_log(path: &str) -> bool {
    const NOT_IN: [&str; 14] = [
        "usr",
        "lib",
        "lib64",
        "boot",
        "bin",
        "sbin",
        "etc",
        "proc",
        "sys",
        "dev",
        "sos_reports",
        "sos_logs",
        ".git",
        "installed-debs",
    ];
    const NOT_SO: [&str; 12] = [
        ".ko",
        ".so",
        ".rpm",
        ".deb",
        ".png",
        ".jpg",
        ".pcap",
        ".html",
        ".xml",
        ".json.sig",
        ".db",
        ".core",
    ];
    // The first component of a sosreport is its own name.
    let mut components = path.trim_start_matches(['.', '/']).split('/');
    let name = components.next_back().unwrap_or_default();
    !components.take(2).any(|c| NOT_IN.contains(&c))
        && !NOT_SO.iter().any(|end| name.ends_with(end))
}

/// A hostile name as it may be printed.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn collect(path: &Path) -> (Vec<(String, String)>, Vec<String>) {
        let mut seen = Vec::new();
        let problems = read(path, &mut |name, stream| {
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("text");
            seen.push((name.rsplit('/').next().unwrap_or(name).to_owned(), text));
        });
        (seen, problems)
    }

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, content) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, *content).expect("entry");
        }
        tar.into_inner().expect("archive")
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(content).expect("gzip");
        gz.finish().expect("gzip")
    }

    #[test]
    fn archives_and_directories_are_read_and_links_are_not_followed() {
        let dir = tempfile::tempdir().expect("directory");
        let inner = gzip(b"rotated\n");
        let tar = archive(&[
            ("sos-n1/var/log/messages", b"one\n"),
            ("sos-n1/var/log/messages.1.gz", &inner),
            ("sos-n1/etc/motd", b"not a log\n"),
        ]);
        let path = dir.path().join("sos.tar.gz");
        std::fs::write(&path, gzip(&tar)).expect("file");
        let (seen, problems) = collect(&path);
        let texts: Vec<_> = seen.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!((texts, problems), (vec!["one\n", "rotated\n"], vec![]));

        std::fs::create_dir(dir.path().join("logs")).expect("directory");
        std::fs::write(dir.path().join("logs/dmesg"), "two\n").expect("file");
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("logs/out")).expect("link");
        std::fs::write(dir.path().join("logs/binary"), b"a\0b").expect("file");
        let (seen, problems) = collect(&dir.path().join("logs"));
        assert_eq!((seen, problems), (vec![("dmesg".to_owned(), "two\n".to_owned())], vec![]));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let dir = tempfile::tempdir().expect("directory");
        let (_, problems) = collect(&dir.path().join("none"));
        assert!(problems[0].ends_with("none: ENOENT: No such file or directory"), "{problems:?}");
        let tar = archive(&[("a.log", &[b'x'; 2048])]);
        let path = dir.path().join("cut.tar");
        std::fs::write(&path, &tar[..700]).expect("file");
        let (_, problems) = collect(&path);
        assert_eq!(problems.len(), 1, "{problems:?}");
    }

    #[test]
    fn a_bomb_of_archives_is_not_opened_without_end() {
        let mut content = b"deep\n".to_vec();
        for _ in 0..8 {
            content = gzip(&content);
        }
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("bomb.gz");
        std::fs::write(&path, content).expect("file");
        let (seen, problems) = collect(&path);
        assert!(seen.is_empty());
        assert!(problems[0].contains("an archive in an archive"), "{problems:?}");
    }
}
