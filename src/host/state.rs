#![allow(clippy::disallowed_methods, reason = "state files are ours to write")]

//! What ibprov leaves for others to read, under `/run/ibprov`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The directory of all state; gone at reboot, like what it describes.
pub const RUN_DIR: &str = "/run/ibprov";
/// Below it, the outcomes of interfaces: `INDEX.json`.
pub const PORTS: &str = "ports";

/// Write `content` to a file that the user named.
///
/// # Errors
/// It cannot be created or written.
pub fn write_file(path: &Path, content: &str) -> io::Result<()> {
    fs::write(path, content)
}

/// Write `content` to the file `name`, whole or not at all: a reader never
/// sees half a report, and a kill leaves the old one.
///
/// # Errors
/// The path that failed, with the system's answer (a read-only `/run`, say).
pub fn write(name: &str, content: &str) -> Result<PathBuf, (PathBuf, io::Error)> {
    let path = Path::new(RUN_DIR).join(name);
    let temporary =
        Path::new(RUN_DIR).join(format!(".{}.{}", name.replace('/', "_"), std::process::id()));
    let attempt = || {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(RUN_DIR)))?;
        let mut file = fs::File::create(&temporary)?;
        file.write_all(content.as_bytes())?;
        fs::rename(&temporary, &path)
    };
    match attempt() {
        Ok(()) => Ok(path),
        Err(e) => {
            // Best effort: the first error is the one to tell.
            drop(fs::remove_file(&temporary));
            Err((path, e))
        }
    }
}

/// The directory of the outcomes of interfaces, made if it is not there.
///
/// # Errors
/// The path that failed, with the system's answer.
pub fn ports_dir() -> Result<PathBuf, (PathBuf, io::Error)> {
    let path = Path::new(RUN_DIR).join(PORTS);
    fs::create_dir_all(&path).map_err(|e| (path.clone(), e))?;
    Ok(path)
}

/// Remove the file `name`, if it is there.
///
/// # Errors
/// The path that failed, with the system's answer.
pub fn remove(name: &str) -> Result<(), (PathBuf, io::Error)> {
    let path = Path::new(RUN_DIR).join(name);
    match fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err((path, e)),
        _ => Ok(()),
    }
}
