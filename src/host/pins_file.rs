#![allow(clippy::disallowed_methods, reason = "the file of pins is ours to write")]

//! Writes and removes the one file of `/etc` that is ibprov's own: the pins.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::state;

/// Replace the file at `path` by one with this content: whole or not at all,
/// and on the disk when this returns. Where `path` is a link, its target is
/// replaced, so a site may keep the file elsewhere.
///
/// # Errors
/// What the system answered; the old file is as it was.
pub fn replace(path: &str, content: &str) -> io::Result<()> {
    let path = target(path)?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    state::directories(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = directory.join(format!(".{name}.{}", std::process::id()));
    let attempt = || {
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o644).open(&temporary)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        File::open(directory)?.sync_all()
    };
    attempt().inspect_err(|_| {
        // Best effort: the first error is the one to tell.
        drop(fs::remove_file(&temporary));
    })?;
    // What a run that was killed has left is no part of this one: it is told to nobody.
    for left in files(&path.to_string_lossy()).unwrap_or_default().iter().skip(1) {
        let pid = left.extension().unwrap_or_default();
        if !Path::new("/proc").join(pid).exists() {
            drop(fs::remove_file(left));
        }
    }
    Ok(())
}

/// The file at `path` with what makes it another file: where it is a link, its target
/// first; and what a run that was killed has left beside it. None if there is nothing.
///
/// # Errors
/// What the system answered.
pub fn files(path: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let target = target(path)?;
    files.extend(target.exists().then(|| target.clone()));
    let start = format!(".{}.", target.file_name().unwrap_or_default().to_string_lossy());
    let entries = match target.parent().map(fs::read_dir) {
        Some(Ok(entries)) => entries,
        Some(Err(e)) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => return Ok(files),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(&start));
        if pid.is_some_and(|pid| pid.bytes().all(|b| b.is_ascii_digit())) {
            files.push(entry.path());
        }
    }
    Ok(files)
}

/// The file that `path` leads to, or `path` itself if it does not exist.
fn target(path: &str) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Path::new(path).to_owned()),
        target => target,
    }
}

/// Remove one of [`files`], and see it gone from the disk.
///
/// # Errors
/// What the system answered.
pub fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_replaced_through_a_link_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let at = |name: &str| dir.path().join(name).display().to_string();
        replace(&at("etc/pins.toml"), "one").expect("a new file, and its directory");
        std::os::unix::fs::symlink("etc/pins.toml", at("link")).expect("link");
        replace(&at("link"), "two").expect("by its link");
        assert_eq!(fs::read_to_string(at("etc/pins.toml")).expect("file"), "two");
        assert!(fs::symlink_metadata(at("link")).expect("link").is_symlink());
        let left: Vec<_> = fs::read_dir(at("etc")).expect("directory").collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn what_a_killed_run_has_left_goes_and_what_a_running_one_writes_stays() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let at = |name: &str| dir.path().join(name).display().to_string();
        // No process has such a number: PID_MAX_LIMIT is 2^22.
        for name in [".pins.toml.4999999", ".pins.toml.1", ".pins.toml.x"] {
            fs::write(at(name), "half").expect("file");
        }
        replace(&at("pins.toml"), "one").expect("file");
        let entries = fs::read_dir(dir.path()).expect("directory");
        let mut left: Vec<_> = entries.map(|e| e.expect("entry").file_name()).collect();
        left.sort();
        assert_eq!(left, [".pins.toml.1", ".pins.toml.x", "pins.toml"]);
    }

    #[test]
    fn all_that_holds_pins_is_found_and_removed() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let at = |name: &str| dir.path().join(name).display().to_string();
        assert_eq!(files(&at("none/pins.toml")).expect("nothing"), Vec::<PathBuf>::new());
        replace(&at("kept/pins.toml"), "one").expect("file");
        for name in ["kept/.pins.toml.17", "kept/.pins.toml.x", "kept/ibprov.toml"] {
            fs::write(at(name), "").expect("file");
        }
        std::os::unix::fs::symlink("kept/pins.toml", at("pins.toml")).expect("link");
        let found = files(&at("pins.toml")).expect("files");
        let names: Vec<_> = found.iter().filter_map(|f| f.file_name()).collect();
        assert_eq!(names, ["pins.toml", ".pins.toml.17"]);
        for file in &found {
            remove(file).expect("removed");
        }
        assert_eq!(files(&at("pins.toml")).expect("nothing"), Vec::<PathBuf>::new());
        assert_eq!(fs::read_dir(at("kept")).expect("directory").count(), 2, "others' files");
    }

    #[test]
    fn a_failure_leaves_the_old_file() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("pins.toml");
        // A directory in the way: the rename fails, whoever runs this.
        fs::create_dir_all(path.join("x")).expect("directory");
        assert!(replace(&path.display().to_string(), "one").is_err());
        let left: Vec<_> = fs::read_dir(dir.path()).expect("directory").collect();
        assert_eq!(left.len(), 1, "no temporary file");
    }
}
