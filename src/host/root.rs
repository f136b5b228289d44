#![allow(clippy::disallowed_methods, reason = "this file is the door to the file tree")]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2, readlinkat};
use nix::sys::stat::{Mode, SFlag, fstat};

use crate::names::UNIT_DIRS;

/// Makes units of start scripts with rc links. systemd 260 does not have it any more.
pub const SYSV_GENERATOR: &str = "systemd-sysv-generator";
pub const RC_LOCAL_GENERATOR: &str = "systemd-rc-local-generator";

const GENERATORS: [&str; 4] = [
    "/etc/systemd/system-generators",
    "/usr/local/lib/systemd/system-generators",
    "/usr/lib/systemd/system-generators",
    "/lib/systemd/system-generators",
];

/// The tree that is looked at: `/`, or a copy of one (`--root DIR`).
///
/// In a copy, symbolic links (absolute ones too) resolve inside it, so a
/// hostile tree cannot lead a reader outside (`openat2(2)`, `RESOLVE_IN_ROOT`,
/// Linux 5.6), and nothing but files and directories is opened: a device node
/// would be a device of this machine. Reads are bounded and never wait for a
/// FIFO's writer.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    /// Set when the tree is a copy; a live `/` needs no confinement.
    dir: Option<OwnedFd>,
}

/// A file of the tree could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("{path}: {}: {}", errno_name(*errno), errno.desc())]
    System {
        /// The path inside the tree.
        path: String,
        errno: Errno,
    },
    /// A device node, a FIFO or a socket of a copied tree.
    #[error("{path} is a {kind}, not a file, and was not opened")]
    NotOpened {
        /// The path inside the tree.
        path: String,
        kind: &'static str,
    },
    /// No file of a copied tree can be opened.
    #[error(
        "/proc is not mounted, and files of a copied tree are opened through it. To mount it: mount -t proc proc /proc"
    )]
    NoProc,
    /// The file's name is not UTF-8.
    #[error("{path:?}: the file name is not UTF-8")]
    BadName {
        /// The path inside the tree.
        path: PathBuf,
    },
    /// The content is not UTF-8 text.
    #[error("{path}: content is not UTF-8 text")]
    NotText {
        /// The path inside the tree.
        path: String,
    },
    /// The content is larger than anything it could rightly be.
    #[error("{path}: larger than {limit} bytes")]
    TooLarge {
        /// The path inside the tree.
        path: String,
        /// The limit in bytes.
        limit: u64,
    },
}

impl ReadError {
    /// True if the file or a directory on the way to it does not exist, or
    /// went away while it was being read (a device removed meanwhile).
    pub fn is_absent(&self) -> bool {
        matches!(
            self,
            Self::System {
                errno: Errno::ENOENT | Errno::ENOTDIR | Errno::ENODEV | Errno::ENXIO,
                ..
            }
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Link,
    /// Something else, as it is called.
    Other(&'static str),
}

impl Kind {
    fn of(inode: &OwnedFd) -> Result<Self, Errno> {
        let mode = SFlag::from_bits_truncate(fstat(inode)?.st_mode) & SFlag::S_IFMT;
        Ok(match mode {
            SFlag::S_IFREG => Self::File,
            SFlag::S_IFDIR => Self::Directory,
            SFlag::S_IFLNK => Self::Link,
            SFlag::S_IFCHR => Self::Other("character device"),
            SFlag::S_IFBLK => Self::Other("block device"),
            SFlag::S_IFIFO => Self::Other("FIFO"),
            _ => Self::Other("socket"),
        })
    }
}

/// The inode of `found`, which an `O_PATH` descriptor only names, opened: the same one,
/// whatever its path names by now.
fn reopened(found: &OwnedFd, flags: OFlag) -> Result<OwnedFd, Errno> {
    let itself = format!("{PROC}/{}", found.as_raw_fd());
    nix::fcntl::open(itself.as_str(), flags, Mode::empty())
}

/// Where a process finds its own descriptors.
const PROC: &str = "/proc/self/fd";

/// The errno's name as the manual pages write it.
pub fn errno_name(errno: Errno) -> String {
    format!("{errno:?}")
}

/// What the system answered, errno by name: `EROFS: Read-only file system`.
pub fn answer(e: &std::io::Error) -> String {
    e.raw_os_error().map_or_else(
        || e.to_string(),
        |raw| {
            let errno = Errno::from_raw(raw);
            format!("{}: {}", errno_name(errno), errno.desc())
        },
    )
}

/// No sysfs attribute is longer than a page.
const ATTRIBUTE_LIMIT: u64 = 64 * 1024;

impl Root {
    pub fn live() -> Self {
        Self { path: PathBuf::from("/"), dir: None }
    }

    /// A copy of a system's tree below `path`.
    ///
    /// # Errors
    /// The directory cannot be opened, or no file can be for lack of `/proc`.
    pub fn copy_at(path: &Path) -> Result<Self, ReadError> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_PATH | OFlag::O_CLOEXEC;
        let dir = nix::fcntl::open(path, flags, Mode::empty())
            .map_err(|errno| ReadError::System { path: path.display().to_string(), errno })?;
        reopened(&dir, flags).map_err(|_| ReadError::NoProc)?;
        Ok(Self { path: path.to_owned(), dir: Some(dir) })
    }

    /// True for the running system, false for a copy of a tree.
    pub const fn is_live(&self) -> bool {
        self.dir.is_none()
    }

    /// Where the tree begins.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, path: &str, flags: OFlag) -> Result<OwnedFd, ReadError> {
        // openat2 refuses flags that O_PATH ignores.
        let reading = if flags.contains(OFlag::O_PATH) {
            OFlag::empty()
        } else {
            OFlag::O_NONBLOCK | OFlag::O_NOCTTY
        };
        let flags = flags | reading | OFlag::O_CLOEXEC;
        let failed = |errno| ReadError::System { path: path.to_owned(), errno };
        let Some(dir) = &self.dir else {
            return nix::fcntl::open(path, flags, Mode::empty()).map_err(failed);
        };
        let named = (flags & OFlag::O_NOFOLLOW) | OFlag::O_PATH | OFlag::O_CLOEXEC;
        let how = OpenHow::new().flags(named).resolve(ResolveFlag::RESOLVE_IN_ROOT);
        // The kernel gives up on a path with `..` or a link when a file or a mount anywhere is moved
        // meanwhile (EAGAIN, openat2(2)), and is asked again.
        let mut attempts = (0..64).map(|_| openat2(dir, path, how));
        let found = attempts.find(|found| !matches!(found, Err(Errno::EAGAIN)));
        let found = found.unwrap_or(Err(Errno::EAGAIN)).map_err(failed)?;
        if flags.contains(OFlag::O_PATH) {
            return Ok(found);
        }
        match Kind::of(&found).map_err(failed)? {
            Kind::Other(kind) => Err(ReadError::NotOpened { path: path.to_owned(), kind }),
            _ => reopened(&found, flags).map_err(failed),
        }
    }

    /// The file at the absolute `path`, open for reading. A FIFO's writer is not
    /// waited for.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn file(&self, path: &str) -> Result<File, ReadError> {
        self.open(path, OFlag::O_RDONLY).map(File::from)
    }

    /// The directory at the absolute `path`, for who puts entries into it.
    ///
    /// # Errors
    /// It cannot be opened, or is no directory.
    pub(super) fn directory(&self, path: &str) -> Result<OwnedFd, ReadError> {
        self.open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)
    }

    /// The bytes of the file at the absolute `path`, at most `limit` of them.
    ///
    /// # Errors
    /// It cannot be opened or read, or holds more than `limit` bytes.
    pub fn bytes(&self, path: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
        let file = File::from(self.open(path, OFlag::O_RDONLY)?);
        // Most files are shorter than a page, and are read at once.
        let mut content = Vec::with_capacity(4096);
        file.take(limit + 1).read_to_end(&mut content).map_err(|e| ReadError::System {
            path: path.to_owned(),
            errno: Errno::from_raw(e.raw_os_error().unwrap_or(nix::libc::EIO)),
        })?;
        if content.len() as u64 > limit {
            return Err(ReadError::TooLarge { path: path.to_owned(), limit });
        }
        Ok(content)
    }

    /// The text of the file at `path`, at most `limit` bytes.
    ///
    /// # Errors
    /// As [`Root::bytes`], and if it is not UTF-8.
    pub fn text(&self, path: &str, limit: u64) -> Result<String, ReadError> {
        String::from_utf8(self.bytes(path, limit)?)
            .map_err(|_| ReadError::NotText { path: path.to_owned() })
    }

    /// A sysfs or procfs attribute, without the white space around it.
    ///
    /// # Errors
    /// As [`Root::text`].
    pub fn attribute(&self, path: &str) -> Result<String, ReadError> {
        Ok(self.text(path, ATTRIBUTE_LIMIT)?.trim().to_owned())
    }

    /// The names in the directory at `path`, sorted.
    ///
    /// # Errors
    /// It cannot be opened or read.
    pub fn entries(&self, path: &str) -> Result<Vec<OsString>, ReadError> {
        let failed = |errno| ReadError::System { path: path.to_owned(), errno };
        let mut dir =
            Dir::from_fd(self.open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?).map_err(failed)?;
        let mut names = Vec::new();
        for entry in dir.iter() {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The names in the directory at `path`, sorted. Names that are not UTF-8
    /// are left out: nothing that ibprov looks for has one.
    ///
    /// # Errors
    /// As [`Root::entries`].
    pub fn list(&self, path: &str) -> Result<Vec<String>, ReadError> {
        let names = self.entries(path)?.into_iter();
        Ok(names.filter_map(|name| name.into_string().ok()).collect())
    }

    /// The names in the directory at `path`; none if it does not exist.
    ///
    /// # Errors
    /// As [`Root::list`], but for a missing directory.
    pub fn list_or_empty(&self, path: &str) -> Result<Vec<String>, ReadError> {
        match self.list(path) {
            Err(e) if e.is_absent() => Ok(Vec::new()),
            other => other,
        }
    }

    /// The last component of the target of the symbolic link at `path`.
    ///
    /// # Errors
    /// It is no link, or cannot be read.
    pub fn link_name(&self, path: &str) -> Result<String, ReadError> {
        let link = self.open(path, OFlag::O_PATH | OFlag::O_NOFOLLOW)?;
        let target = readlinkat(&link, "")
            .map_err(|errno| ReadError::System { path: path.to_owned(), errno })?;
        let name = Path::new(&target).file_name().and_then(|n| n.to_str());
        name.map(str::to_owned).ok_or_else(|| ReadError::NotText { path: path.to_owned() })
    }

    /// What `path` itself is: a link is not followed.
    ///
    /// # Errors
    /// It does not exist, or cannot be looked at.
    pub fn kind(&self, path: &str) -> Result<Kind, ReadError> {
        let inode = self.open(path, OFlag::O_PATH | OFlag::O_NOFOLLOW)?;
        Kind::of(&inode).map_err(|errno| ReadError::System { path: path.to_owned(), errno })
    }

    /// True if `path` is a symbolic link, wherever it leads.
    pub fn is_link(&self, path: &str) -> bool {
        self.kind(path) == Ok(Kind::Link)
    }

    /// The whole target of the symbolic link at `path`.
    ///
    /// # Errors
    /// It is no link, or cannot be read.
    pub fn link_target(&self, path: &str) -> Result<String, ReadError> {
        let link = self.open(path, OFlag::O_PATH | OFlag::O_NOFOLLOW)?;
        let target = readlinkat(&link, "")
            .map_err(|errno| ReadError::System { path: path.to_owned(), errno })?;
        Ok(target.to_string_lossy().into_owned())
    }

    /// True if systemd has the generator of this name (systemd.generator(7)), or the tree has no
    /// generators at all, which does not tell.
    pub fn has_generator(&self, name: &str) -> bool {
        let mut dirs = GENERATORS.iter().filter(|dir| self.exists(dir)).peekable();
        dirs.peek().is_none() || dirs.any(|dir| self.exists(&format!("{dir}/{name}")))
    }

    /// True if this host runs rc.local: by systemd's generator, which systemd 260 does not have
    /// any more, or by a unit.
    pub fn runs_rc_local(&self) -> bool {
        let mut units = UNIT_DIRS.iter().map(|dir| format!("{dir}/rc-local.service"));
        self.has_generator(RC_LOCAL_GENERATOR) || units.any(|unit| self.exists(&unit))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.open(path, OFlag::O_PATH).is_ok()
    }

    /// When the file at `path` was changed, in seconds of the time of day; of a copy, what it has
    /// kept of that.
    pub fn changed_sec(&self, path: &str) -> Option<i64> {
        let stat = fstat(self.open(path, OFlag::O_PATH).ok()?).ok()?;
        Some(if self.is_live() { stat.st_ctime.max(stat.st_mtime) } else { stat.st_mtime })
    }

    /// When this boot began, in seconds of the time of day.
    pub fn boot_sec(&self) -> Option<i64> {
        let text = self.text("/proc/stat", 4 << 20).ok()?;
        text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
    }

    /// The regular file at `path`, open for reading, if no other file system has to be entered
    /// for it: one of a network may not answer. Nothing else is opened: some devices act when
    /// they are.
    ///
    /// # Errors
    /// Why it is not looked for.
    pub fn own_file(&self, path: &str) -> Result<Option<File>, &'static str> {
        let Ok(top) = self.open("/", OFlag::O_PATH | OFlag::O_DIRECTORY) else { return Ok(None) };
        let resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_XDEV;
        let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(resolve);
        let found = match openat2(&top, path, how) {
            Ok(found) => found,
            Err(errno) => return not_entered(errno).map_or(Ok(None), Err),
        };
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        Ok(match Kind::of(&found) {
            Ok(Kind::File) => reopened(&found, flags).ok().map(File::from),
            _ => None,
        })
    }
}

/// Why `openat2` with `RESOLVE_NO_XDEV` has not looked for a file, if so.
const fn not_entered(errno: Errno) -> Option<&'static str> {
    match errno {
        Errno::EXDEV => Some("it is on another file system, which may not answer"),
        // EPERM: by seccomp filters that do not know the call.
        Errno::ENOSYS | Errno::EPERM => Some("that needs openat2(2) of Linux 5.6"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree() -> tempfile::TempDir {
        let links =
            [("abs", "/sys/class"), ("out", "/etc/hostname"), ("up", "../../../../../../etc")];
        let dir = crate::host::testing::tree(&[("sys/class/attr", "  4: ACTIVE\n")], &links);
        fs::write(dir.path().join("sys/class/binary"), [0xff, 0xfe]).expect("file");
        dir
    }

    #[test]
    fn absolute_links_stay_inside_the_copy() {
        let dir = tree();
        let root = Root::copy_at(dir.path()).expect("root");
        assert_eq!(root.attribute("/abs/attr").as_deref(), Ok("4: ACTIVE"));
        assert!(root.text("/out", 100).expect_err("outside").is_absent());
        assert!(root.list("/up").expect_err("outside").is_absent());
        assert_eq!(root.link_name("/abs").as_deref(), Ok("class"));
    }

    #[test]
    fn what_is_not_text_or_too_large_is_said() {
        let dir = tree();
        let root = Root::copy_at(dir.path()).expect("root");
        let e = root.attribute("/sys/class/binary").expect_err("binary");
        assert_eq!(e.to_string(), "/sys/class/binary: content is not UTF-8 text");
        let e = root.text("/sys/class/attr", 4).expect_err("limit");
        assert_eq!(e.to_string(), "/sys/class/attr: larger than 4 bytes");
        let e = root.text("/none", 4).expect_err("absent");
        assert_eq!(e.to_string(), "/none: ENOENT: No such file or directory");
    }

    #[test]
    fn a_link_is_known_by_its_inode() {
        let links = [("a", "."), ("b", ".."), ("c", "/"), ("d", "x/.."), ("e", "none"), ("f", "x")];
        let dir = crate::host::testing::tree(&[("x/file", "")], &links);
        let root = Root::copy_at(dir.path()).expect("root");
        for (path, _) in links {
            assert!(root.is_link(path), "{path}");
        }
        assert!(!root.is_link("/x") && !root.is_link("/x/file") && !root.is_link("/none"));
    }

    #[test]
    fn no_device_node_of_a_copy_is_opened() {
        let dir = tree();
        let at = |name: &str| dir.path().join(name);
        nix::unistd::mkfifo(&at("fifo"), Mode::S_IRWXU).expect("fifo");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("socket");
        // /dev/full, which gives zeros without end.
        let full = nix::sys::stat::makedev(1, 7);
        nix::sys::stat::mknod(&at("char"), SFlag::S_IFCHR, Mode::S_IRWXU, full)
            .expect("a device, for which root is needed");
        std::os::unix::fs::symlink("char", at("link")).expect("link");
        let root = Root::copy_at(dir.path()).expect("root");
        for (path, what) in [
            ("/fifo", "FIFO"),
            ("/socket", "socket"),
            ("/char", "character device"),
            ("/link", "character device"),
        ] {
            let e = root.text(path, 10).expect_err(path);
            assert_eq!(
                e.to_string(),
                format!("{path} is a {what}, not a file, and was not opened")
            );
            assert!(!e.is_absent() && root.file(path).is_err() && root.list(path).is_err());
            assert!(root.exists(path) && root.own_file(path).is_ok_and(|file| file.is_none()));
        }
        assert_eq!(
            root.list("/sys/class").as_deref(),
            Ok(["attr", "binary"].map(str::to_owned).as_slice())
        );
    }

    #[test]
    fn a_fifo_without_writer_does_not_hang() {
        let dir = tree();
        nix::unistd::mkfifo(&dir.path().join("fifo"), Mode::S_IRWXU).expect("fifo");
        let root = Root::copy_at(dir.path()).expect("root");
        let has = |path: &str| root.own_file(path).is_ok_and(|file| file.is_some());
        let live = dir.path().join("fifo").display().to_string();
        assert_eq!(Root::live().text(&live, 10).as_deref(), Ok(""));
        assert!(!has("/fifo") && !has("/sys") && has("/abs/attr"));
        let other = Root::live().own_file("/proc/version").expect_err("another file system");
        assert!(other.contains("another file system"), "{other}");
        assert!(not_entered(Errno::ENOSYS).is_some_and(|why| why.contains("Linux 5.6")));
        assert_eq!(not_entered(Errno::ENOENT), None);
    }
}
