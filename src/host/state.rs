#![allow(clippy::disallowed_methods, reason = "state files are ours to write")]

//! What ibprov leaves for others to read, under `/run/ibprov`.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::libc::{O_DIRECTORY, O_NOFOLLOW};

use super::answer;

/// The directory of all state; gone at reboot, like what it describes.
pub const RUN_DIR: &str = "/run/ibprov";
/// The directory of what outlives a boot.
const LASTING_DIR: &str = "/var/lib/ibprov";
/// Below it, the outcomes of interfaces: `INDEX.json`.
pub const PORTS: &str = "ports";
/// The same of PFs: `PCI.json`, and `PCI.undo`.
pub const PFS: &str = "pf";

/// Below it, while `ibprov boot` is running, a link to its process in `/proc`: udev's rule
/// starts ibprov's units for devices that appear meanwhile although ibprov.service is not
/// enabled. After a kill the link leads nowhere, and udev's `TEST` follows links.
pub const RUNNING: &str = "boot.running";

/// Everybody may read reports, and only root may write: whoever starts ibprov, and
/// whatever umask it inherits.
const DIRECTORY_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;

/// What the system answered about a file or directory of ours.
#[derive(Debug, thiserror::Error)]
#[error("{}: {answer}", path.display())]
pub struct StateError {
    path: PathBuf,
    pub answer: String,
}

impl StateError {
    fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        |e| Self { path: path.to_owned(), answer: answer(&e) }
    }
}

/// Make the directory of all state, if it is not there, and see that it is root's alone.
///
/// # Errors
/// As [`own_directory`].
pub(super) fn directory() -> io::Result<()> {
    own_directory(Path::new(RUN_DIR), DIRECTORY_MODE)
}

/// Make the directory at `path`, if it is not there, with exactly this mode. One that is
/// there with another mode (made under another umask) gets this one.
///
/// # Errors
/// It can be neither found nor made, is no directory, or is somebody else's: what is in
/// it may be forged, and who made it can put anything there.
pub(super) fn own_directory(path: &Path, mode: u32) -> io::Result<()> {
    match fs::DirBuilder::new().mode(mode).create(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let how = O_DIRECTORY | O_NOFOLLOW;
    let directory = OpenOptions::new().read(true).custom_flags(how).open(path)?;
    let meta = directory.metadata()?;
    if !is_ours(&meta) {
        return Err(io::Error::other(format!(
            "the directory belongs to user {}, not to root, so that its content may be forged: remove it",
            meta.uid()
        )));
    }
    let may_change = meta.uid() == nix::unistd::geteuid().as_raw();
    if may_change && meta.mode() & 0o7777 != mode {
        directory.set_permissions(Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Make the directories below `top`, down to `path`, as [`own_directory`] does.
fn own_directories(top: &Path, path: &Path) -> io::Result<()> {
    let below: Vec<&Path> = path.ancestors().take_while(|directory| *directory != top).collect();
    below.into_iter().rev().try_for_each(|directory| own_directory(directory, DIRECTORY_MODE))
}

/// Make the directory at `path`, and those above it, where they are not there: whatever the umask,
/// only their owner can write to them.
pub(super) fn directories(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
}

/// The directory `name` of what outlives a boot, made with those above it.
///
/// # Errors
/// The path that failed, with the system's answer.
pub fn lasting_dir(name: &str) -> Result<PathBuf, StateError> {
    let path = Path::new(LASTING_DIR).join(name);
    own_directories(Path::new(LASTING_DIR).parent().unwrap_or(&path), &path)
        .map_err(StateError::at(&path))?;
    Ok(path)
}

/// Root's, or of who runs this.
pub(super) fn is_ours(meta: &fs::Metadata) -> bool {
    [0, nix::unistd::geteuid().as_raw()].contains(&meta.uid())
}

/// Write `content` to a file that the user named.
///
/// # Errors
/// It cannot be created or written.
pub fn write_file(path: &Path, content: &str) -> io::Result<()> {
    fs::write(path, content)
}

/// Replace the file at `path`, which everybody may read, by one with this content: whole or
/// not at all. Its directory must exist. What is read while this runs is the old file or the
/// new one.
///
/// # Errors
/// What the system answered; the old file is as it was.
pub fn replace(path: &Path, content: &str) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    let temporary = format!(".{}.{}", name.to_string_lossy(), std::process::id());
    let temporary = path.with_file_name(temporary);
    write_by_way_of(&temporary, path, content, FILE_MODE)
}

/// Write `content` to the new file `temporary`, and give that the name `path`.
fn write_by_way_of(temporary: &Path, path: &Path, content: &str, mode: u32) -> io::Result<()> {
    let written = new_file(temporary, mode).and_then(|mut file| file.write_all(content.as_bytes()));
    written.and_then(|()| fs::rename(temporary, path)).inspect_err(|_| {
        // Best effort: the first error is the one to tell.
        drop(fs::remove_file(temporary));
    })
}

/// Write `content` to the file `name`, whole or not at all: a reader never
/// sees half a report, and a kill leaves the old one.
///
/// # Errors
/// The path that failed, with the system's answer (a read-only `/run`, say).
pub fn write(name: &str, content: &str) -> Result<PathBuf, StateError> {
    write_with(name, content, FILE_MODE)
}

/// The same for what only root may read.
///
/// # Errors
/// As [`write`].
pub fn write_secret(name: &str, content: &str) -> Result<PathBuf, StateError> {
    write_with(name, content, 0o600)
}

fn write_with(name: &str, content: &str, mode: u32) -> Result<PathBuf, StateError> {
    let run = Path::new(RUN_DIR);
    let path = run.join(name);
    let temporary = run.join(format!(".{}.{}", name.replace('/', "_"), std::process::id()));
    directory()
        .and_then(|()| own_directories(run, path.parent().unwrap_or(run)))
        .and_then(|()| write_by_way_of(&temporary, &path, content, mode))
        .map_err(StateError::at(&path))?;
    sweep(run);
    Ok(path)
}

/// `ibprov boot` is running, as long as this lives.
#[derive(Debug)]
pub struct Running(PathBuf);

impl Running {
    /// Let udev's rule know; the caller holds the lock of boots.
    ///
    /// # Errors
    /// As [`write`].
    pub fn begin() -> Result<Self, StateError> {
        let path = Path::new(RUN_DIR).join(RUNNING);
        let made = directory().and_then(|()| link_to_self(&path));
        made.map_err(StateError::at(&path))?;
        Ok(Self(path))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that is left leads nowhere once this process has ended.
        drop(fs::remove_file(&self.0));
    }
}

/// Make `path` a link to this process, whatever was left there.
fn link_to_self(path: &Path) -> io::Result<()> {
    remove_if_there(path)?;
    symlink(format!("/proc/{}", std::process::id()), path)
}

/// Remove what processes that were killed while they wrote have left in `run`: files
/// called `.NAME.PID`. Best effort: nobody reads them.
fn sweep(run: &Path) {
    let Ok(entries) = fs::read_dir(run) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let pid = name.strip_prefix('.').and_then(|rest| rest.rsplit_once('.'));
        let pid = pid.and_then(|(_, pid)| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// A new file of ours at `path`: never what is there under that name, or behind a link.
fn new_file(path: &Path, mode: u32) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.write(true).create_new(true).mode(mode);
    let file = match how.open(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            // Of a process with our number that was killed.
            fs::remove_file(path)?;
            how.open(path)?
        }
        other => other?,
    };
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// The directory `name` of outcomes, [`PORTS`] or [`PFS`], made if it is not there.
///
/// # Errors
/// The path that failed, with the system's answer.
pub fn outcomes_dir(name: &str) -> Result<PathBuf, StateError> {
    let path = Path::new(RUN_DIR).join(name);
    let made = directory().and_then(|()| own_directory(&path, DIRECTORY_MODE));
    made.map_err(StateError::at(&path))?;
    Ok(path)
}

/// Remove the file `name`, if it is there.
///
/// # Errors
/// The path that failed, with the system's answer.
pub fn remove(name: &str) -> Result<(), StateError> {
    let path = Path::new(RUN_DIR).join(name);
    remove_if_there(&path).map_err(StateError::at(&path))
}

/// Removes a file that may not exist.
pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("metadata").mode() & 0o7777
    }

    #[test]
    fn a_directory_gets_its_mode_whatever_it_was_and_somebody_elses_is_refused() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("run");
        fs::create_dir(&path).expect("directory");
        for was in [0o777, 0o1777, 0o700, 0o755] {
            fs::set_permissions(&path, Permissions::from_mode(was)).expect("mode");
            own_directory(&path, 0o755).expect("ours");
            assert_eq!(mode(&path), 0o755, "{was:o}");
        }
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("link");
        let e = own_directory(&link, 0o700).expect_err("a link");
        assert_eq!(e.raw_os_error(), Some(nix::libc::ENOTDIR));
        assert_eq!(mode(&path), 0o755);
        std::os::unix::fs::chown(&path, Some(65534), None).expect("tests run as root");
        let e = own_directory(&path, 0o755).expect_err("of nobody");
        assert!(
            e.to_string().starts_with("the directory belongs to user 65534, not to root"),
            "{e}"
        );
    }

    #[test]
    fn a_boot_that_is_running_takes_the_place_of_one_that_was_killed() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join(RUNNING);
        let mut child = std::process::Command::new("true").spawn().expect("true");
        child.wait().expect("ended");
        symlink(format!("/proc/{}", child.id()), &path).expect("left by a kill");
        assert!(!path.exists(), "nobody runs");
        link_to_self(&path).expect("linked");
        assert!(path.exists());
        drop(Running(path.clone()));
        assert!(fs::symlink_metadata(&path).is_err());
    }

    #[test]
    fn what_a_killed_process_was_writing_is_swept_and_nothing_else() {
        let dir = tempfile::tempdir().expect("directory");
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let gone = child.id();
        child.wait().expect("ended");
        let own = std::process::id();
        let (left, written) = (format!(".boot.json.{gone}"), format!(".boot.json.{own}"));
        let others = ["boot.json", ".boot.json.x", "a.7", written.as_str()];
        for name in others.iter().copied().chain([left.as_str()]) {
            fs::write(dir.path().join(name), "").expect("file");
        }
        sweep(dir.path());
        assert!(!dir.path().join(&left).exists());
        assert!(others.iter().all(|name| dir.path().join(name).exists()));
    }

    #[test]
    fn a_file_is_replaced_whole_for_everybody_to_read_or_stays_as_it_was() {
        let dir = tempfile::tempdir().expect("directory");
        let (path, victim) = (dir.path().join("ibprov.prom"), dir.path().join("victim"));
        fs::write(&victim, "theirs").expect("file");
        std::os::unix::fs::symlink(&victim, &path).expect("link");
        replace(&path, "one\n").expect("in place of a link");
        assert_eq!(fs::read_to_string(&victim).expect("file"), "theirs");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("mode");
        replace(&path, "two\n").expect("in place of a file");
        assert_eq!(
            (fs::read_to_string(&path).expect("file"), mode(&path)),
            ("two\n".into(), 0o644)
        );
        // A directory in the way: the rename fails, whoever runs this.
        let taken = dir.path().join("taken");
        fs::create_dir_all(taken.join("x")).expect("directory");
        replace(&taken, "three\n").expect_err("a directory");
        replace(&dir.path().join("none/ibprov.prom"), "x").expect_err("no directory");
        assert_eq!(fs::read_dir(dir.path()).expect("directory").count(), 3, "nothing is left over");
    }

    #[test]
    fn a_report_is_never_written_into_what_is_there() {
        let dir = tempfile::tempdir().expect("directory");
        let (victim, path) = (dir.path().join("victim"), dir.path().join(".boot.json.7"));
        fs::write(&victim, "whole").expect("file");
        std::os::unix::fs::symlink(&victim, &path).expect("link");
        new_file(&path, FILE_MODE).expect("new").write_all(b"report").expect("written");
        assert_eq!(fs::read_to_string(&victim).expect("file"), "whole");
        assert!(fs::symlink_metadata(&path).expect("file").is_file());
        assert_eq!(mode(&path), 0o644);
    }
}
