#![allow(clippy::disallowed_methods, reason = "locks are files of our own")]

//! One lock file per object, `/run/ibprov/lock/NAME`, holding its owner's pid.
//!
//! A child that does the work inherits the lock as its standard input, so the
//! lock lives as long as the work, whatever becomes of ibprov. The release is
//! an event: the last close of a file opened for writing (IN_CLOSE_WRITE).

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

/// Where the locks are.
#[derive(Debug, Clone)]
pub struct Locks {
    dir: PathBuf,
}

/// A lock (`flock(2)`), held until it and every child it was given to are gone.
#[derive(Debug)]
pub struct Held(File);

/// Why a lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it.
    #[error("held by process {}", owner.map_or_else(|| "unknown".to_owned(), |p| p.to_string()))]
    Busy {
        /// The pid written in it.
        owner: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error("{path}: {source}")]
    Unusable {
        /// The lock file.
        path: String,
        /// What the system answered.
        source: io::Error,
    },
}

impl Locks {
    /// The locks of the running system. The directory is made if it can be.
    ///
    /// # Errors
    /// The directory can be neither found nor made.
    pub fn in_run() -> Result<Self, LockError> {
        let dir = PathBuf::from(super::state::RUN_DIR).join("lock");
        let path = || dir.display().to_string();
        fs::create_dir_all(&dir).map_err(|source| LockError::Unusable { path: path(), source })?;
        Ok(Self { dir })
    }

    /// The directory, for who wants to watch for releases.
    #[must_use]
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }

    /// Take `name`, without waiting.
    ///
    /// # Errors
    /// It is held, or its file cannot be used.
    pub fn try_take(&self, name: &str) -> Result<Held, LockError> {
        // Names are made of PCI addresses and module names: no path in them.
        let path = self.dir.join(name.replace('/', "_"));
        let unusable = |source| LockError::Unusable { path: path.display().to_string(), source };
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(unusable)?;
        let mut content = String::new();
        file.read_to_string(&mut content).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {
                let mut held = Held(file);
                held.set_owner(std::process::id()).map_err(unusable)?;
                Ok(held)
            }
            Err(TryLockError::WouldBlock) => {
                Err(LockError::Busy { owner: content.trim().parse().ok() })
            }
            Err(TryLockError::Error(e)) => Err(unusable(e)),
        }
    }
}

impl Held {
    /// Write down who holds it.
    ///
    /// # Errors
    /// The lock file cannot be written.
    pub fn set_owner(&mut self, pid: u32) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        writeln!(self.0, "{pid}")
    }

    /// A second handle of the same lock, for a child to hold.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn share(&self) -> io::Result<File> {
        self.0.try_clone()
    }
}
