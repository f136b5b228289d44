#![allow(clippy::disallowed_methods, reason = "files and links of /etc are put in place here")]

//! Puts single files, links and directories of a tree in place, each whole or not at all,
//! and on the disk when the call returns; and has systemd and udev read them.
//!
//! Of a copied tree, nothing outside is touched: the directory is found inside the tree, and
//! its entry is never followed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstatat, futimens, mkdirat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, symlinkat, unlinkat};

use super::root::{ReadError, Root};
use super::systemctl::ask_within;
use crate::names::{FileOwner, FileTime, PathState};

/// No file that is kept is larger, bytes.
const LIMIT: u64 = 1 << 20;
/// How long systemctl and udevadm may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The directory of `path`, and the name in it.
fn place<'a>(root: &Root, path: &'a str) -> io::Result<(OwnedFd, &'a str)> {
    let (dir, name) = path.rsplit_once('/').ok_or(Errno::EINVAL)?;
    if name.is_empty() || matches!(name, "." | "..") {
        return Err(Errno::EINVAL.into());
    }
    let dir = if dir.is_empty() { "/" } else { dir };
    Ok((root.directory(dir).map_err(as_io)?, name))
}

fn as_io(e: ReadError) -> io::Error {
    match e {
        ReadError::System { errno, .. } => errno.into(),
        other => io::Error::other(other.to_string()),
    }
}

/// What is at `path` now.
///
/// # Errors
/// It cannot be read; it is neither file, link nor directory; it is a file larger than
/// 1 MiB, or one that is not UTF-8 text, which could not be kept.
pub fn state(root: &Root, path: &str) -> io::Result<PathState> {
    let (dir, name) = match place(root, path) {
        Err(e) if matches!(e.raw_os_error().map(Errno::from_raw), Some(Errno::ENOENT)) => {
            return Ok(PathState::Absent);
        }
        other => other?,
    };
    let stat = match fstatat(&dir, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Err(Errno::ENOENT) => return Ok(PathState::Absent),
        other => other?,
    };
    match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFDIR => Ok(PathState::Directory),
        SFlag::S_IFLNK => {
            let target = readlinkat(&dir, name)?.into_string();
            Ok(PathState::link(
                target.map_err(|_| io::Error::other("the target of the link is not UTF-8"))?,
            ))
        }
        SFlag::S_IFREG => file(&dir, name, &stat),
        _ => Err(io::Error::other("the path is neither a file nor a link nor a directory")),
    }
}

fn file(dir: &OwnedFd, name: &str, stat: &FileStat) -> io::Result<PathState> {
    let how = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = File::from(openat(dir, name, how, Mode::empty())?);
    let mut content = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut content)?;
    if content.len() as u64 > LIMIT {
        return Err(io::Error::other(format!("the file is larger than {LIMIT} bytes")));
    }
    let text = String::from_utf8(content);
    Ok(PathState::File {
        text: text.map_err(|_| io::Error::other("the content of the file is not UTF-8 text"))?,
        mode: stat.st_mode & 0o7777,
        owner: Some(FileOwner { user: stat.st_uid, group: stat.st_gid }),
        modified: Some(FileTime { sec: stat.st_mtime, nsec: stat.st_mtime_nsec }),
    })
}

/// Have it so at `path`. A directory is removed only if it is empty.
///
/// # Errors
/// What the system answered; what was there is as it was.
pub fn put(root: &Root, path: &str, wanted: &PathState) -> io::Result<()> {
    let (dir, name) = place(root, path)?;
    sweep_in(&dir, name)?;
    match wanted {
        PathState::Absent => remove(&dir, name)?,
        PathState::Directory => match mkdirat(&dir, name, Mode::from_bits_truncate(0o755)) {
            Err(Errno::EEXIST) => {}
            other => other?,
        },
        PathState::Link { target } => {
            let temporary = temporary(name);
            symlinkat(target.as_str(), &dir, temporary.as_str())?;
            replace(&dir, &temporary, name)?;
        }
        PathState::File { text, mode, owner, modified } => {
            let temporary = temporary(name);
            let how = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
            let mut file =
                File::from(openat(&dir, temporary.as_str(), how, Mode::from_bits_truncate(0o600))?);
            let mut fill = || -> io::Result<()> {
                file.write_all(text.as_bytes())?;
                if let Some(owner) = owner {
                    let (user, group) = (Uid::from_raw(owner.user), Gid::from_raw(owner.group));
                    fchown(&file, Some(user), Some(group))?;
                }
                // After the owner, whose change takes set-user-ID bits away.
                fchmod(&file, Mode::from_bits_truncate(*mode))?;
                if let Some(time) = modified {
                    let time = TimeSpec::new(time.sec, time.nsec);
                    futimens(file.as_fd(), &time, &time)?;
                }
                file.sync_all()
            };
            if let Err(e) = fill() {
                // Best effort: the first error is the one to tell.
                let _ = unlinkat(&dir, temporary.as_str(), UnlinkatFlags::NoRemoveDir);
                return Err(e);
            }
            replace(&dir, &temporary, name)?;
        }
    }
    nix::unistd::fsync(&dir)?;
    Ok(())
}

/// Remove what a run that was killed has left beside `path`.
///
/// # Errors
/// What the system answered.
pub fn sweep(root: &Root, path: &str) -> io::Result<()> {
    match place(root, path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
        Ok((dir, name)) => sweep_in(&dir, name),
    }
}

fn sweep_in(dir: &OwnedFd, name: &str) -> io::Result<()> {
    match unlinkat(dir, temporary(name).as_str(), UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Neither systemd, udev nor ibprov read a file of this name.
fn temporary(name: &str) -> String {
    format!(".{name}.ibprov-new")
}

fn replace(dir: &OwnedFd, temporary: &str, name: &str) -> io::Result<()> {
    renameat(dir, temporary, dir, name).map_err(|e| {
        // Best effort: the first error is the one to tell.
        let _ = unlinkat(dir, temporary, UnlinkatFlags::NoRemoveDir);
        e.into()
    })
}

fn remove(dir: &OwnedFd, name: &str) -> io::Result<()> {
    let removed = match unlinkat(dir, name, UnlinkatFlags::NoRemoveDir) {
        Err(Errno::EISDIR) => unlinkat(dir, name, UnlinkatFlags::RemoveDir),
        other => other,
    };
    match removed {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Have systemd and udev read their files again, where they run: no unit is started,
/// restarted or stopped by that. Gives what could not be told, one line each.
pub fn reload(root: &Root) -> Vec<String> {
    if !root.is_live() {
        return Vec::new();
    }
    let who: [(&str, &str, &[&str]); 2] = [
        ("/run/systemd/system", "systemctl", &["daemon-reload"]),
        ("/run/udev/control", "udevadm", &["control", "--reload"]),
    ];
    let runs = who.into_iter().filter(|(runs, ..)| root.exists(runs));
    let told = runs.map(|(_, program, args)| ask_within(PATIENCE, program, args));
    told.filter_map(|told| told.err().map(|e| e.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;

    #[test]
    fn each_state_is_put_and_read_back_and_nothing_is_left_beside_it() {
        let dir = tree(&[("etc/x", "old")], &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let before = state(&root, "/etc/x").expect("state");
        let file = PathState::File {
            text: "new".to_owned(),
            mode: 0o640,
            owner: None,
            modified: Some(FileTime { sec: 1_000_000_000, nsec: 7 }),
        };
        for wanted in
            [PathState::link("/nowhere"), file, PathState::Absent, PathState::own_file("own")]
        {
            put(&root, "/etc/x", &wanted).expect("put");
            assert!(state(&root, "/etc/x").expect("state").is_same(&wanted), "{wanted:?}");
        }
        put(&root, "/etc/x", &before).expect("put");
        // The time, too.
        assert_eq!(state(&root, "/etc/x").expect("state"), before);
        assert_eq!(root.list("/etc").expect("list"), ["x"]);
        put(&root, "/etc/d", &PathState::Directory).expect("directory");
        put(&root, "/etc/d/y", &PathState::own_file("")).expect("file");
        let e = put(&root, "/etc/d", &PathState::Absent).expect_err("not empty");
        assert_eq!(e.raw_os_error(), Some(nix::libc::ENOTEMPTY));
        assert_eq!(state(&root, "/none/z").expect("state"), PathState::Absent);
    }

    #[test]
    fn a_link_leads_nobody_out_of_the_tree() {
        let outside = tree(&[("y", "theirs")], &[]);
        let target = outside.path().display().to_string();
        let dir = tree(&[], &[("etc/out", &target), ("etc/file", &format!("{target}/y"))]);
        let root = Root::copy_at(dir.path()).expect("root");
        assert!(put(&root, "/etc/out/y", &PathState::Absent).is_err());
        put(&root, "/etc/file", &PathState::own_file("ours")).expect("the link is replaced");
        assert_eq!(std::fs::read_to_string(outside.path().join("y")).expect("file"), "theirs");
    }

    #[test]
    fn what_a_killed_run_has_left_is_no_hindrance() {
        let dir = tree(&[("etc/.x.ibprov-new", "half")], &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        put(&root, "/etc/x", &PathState::own_file("whole")).expect("put");
        assert_eq!(root.list("/etc").expect("list"), ["x"]);
    }
}
