#![allow(clippy::disallowed_methods, reason = "an archive is written where the user says")]

//! Writes a tar archive, compressed by gzip: whole or not at all, and for its owner alone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

/// An archive that is being written.
#[derive(Debug)]
pub struct Archive {
    /// What it will be called.
    path: PathBuf,
    /// What it is called until it is whole; none once it is.
    temporary: Option<PathBuf>,
    tar: Option<Writer>,
    /// The folder that all its files are in.
    top: String,
    files: usize,
}

struct Writer(Builder<GzEncoder<File>>);

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writer")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// How many files are in it.
    pub files: usize,
    pub bytes: u64,
}

/// Mode of the archive: what is in it is for who collects it.
const MODE: u32 = 0o600;

/// Characters of the name of a file in it.
const LONGEST_NAME: usize = 200;

impl Archive {
    /// Begin the archive `path`, whose files are in the folder `top`.
    ///
    /// # Errors
    /// No file can be made there.
    pub fn create(path: &Path, top: &str) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        if fs::metadata(path).is_ok_and(|meta| meta.is_dir()) {
            return Err(nix::errno::Errno::EISDIR.into());
        }
        let temporary = directory.join(format!(".{name}.{}", std::process::id()));
        let mut how = OpenOptions::new();
        how.write(true).create_new(true).mode(MODE).custom_flags(nix::libc::O_NOFOLLOW);
        let file = how.open(&temporary)?;
        let tar = Writer(Builder::new(GzEncoder::new(file, Compression::default())));
        Ok(Self {
            path: path.to_owned(),
            temporary: Some(temporary),
            tar: Some(tar),
            top: safe(top),
            files: 0,
        })
    }

    /// Add the file `name`, which may be anybody's: only what is harmless in a name is kept.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let Some(Writer(tar)) = &mut self.tar else {
            return Err(io::Error::other("the archive has been finished"));
        };
        let parts = name.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
        let parts: Vec<String> = parts.map(safe).collect();
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(content.len() as u64);
        header.set_mode(MODE);
        tar.append_data(&mut header, format!("{}/{}", self.top, parts.join("/")), content)?;
        self.files += 1;
        Ok(())
    }

    /// Write what is left, to the disk, and give the archive its name.
    ///
    /// # Errors
    /// It cannot be written; then nothing of it is left.
    pub fn finish(mut self) -> io::Result<Written> {
        let (Some(Writer(tar)), Some(temporary)) = (self.tar.take(), self.temporary.as_ref())
        else {
            return Err(io::Error::other("the archive has been finished"));
        };
        let file = tar.into_inner()?.finish()?;
        file.sync_all()?;
        let bytes = file.metadata()?.len();
        fs::rename(temporary, &self.path)?;
        self.temporary = None;
        Ok(Written { files: self.files, bytes })
    }
}

impl Drop for Archive {
    /// One that was not finished leaves nothing behind, if the system lets it.
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            drop(fs::remove_file(temporary));
        }
    }
}

/// A name without what may do harm where it is unpacked or printed.
fn safe(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.,+@=:".contains(c);
    let name: String =
        name.chars().map(|c| if fits(c) { c } else { '_' }).take(LONGEST_NAME).collect();
    match name.as_str() {
        "" | "." | ".." => "_".to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let file = flate2::read::GzDecoder::new(File::open(path).expect("archive"));
        let mut archive = tar::Archive::new(file);
        let entries = archive.entries().expect("entries");
        entries
            .map(|entry| entry.expect("entry").path().expect("path").display().to_string())
            .collect()
    }

    #[test]
    fn an_archive_is_whole_and_its_owners_and_its_names_are_harmless() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("x.tar.gz");
        let long = "n".repeat(1000);
        let mut archive = Archive::create(&path, "top").expect("archive");
        for name in ["a", "/etc/../../b", "x/..", "\u{1b}[2J\n/d", &long] {
            archive.add(name, b"x").expect("file");
        }
        assert!(!path.exists(), "it has no name before it is whole");
        let written = archive.finish().expect("archive");
        let long = format!("top/{}", "n".repeat(LONGEST_NAME));
        assert_eq!(names(&path), ["top/a", "top/etc/b", "top/x", "top/__2J_/d", &long]);
        let meta = fs::metadata(&path).expect("file");
        assert_eq!((written.files, written.bytes), (5, meta.len()));
        assert_eq!(meta.permissions().mode() & 0o7777, MODE);
        assert_eq!(fs::read_dir(dir.path()).expect("directory").count(), 1);
    }

    #[test]
    fn one_that_is_not_finished_leaves_nothing_and_a_link_is_not_followed() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("x.tar.gz");
        let mut archive = Archive::create(&path, "top").expect("archive");
        archive.add("a", b"x").expect("file");
        drop(archive);
        assert_eq!(fs::read_dir(dir.path()).expect("directory").count(), 0);
        let victim = dir.path().join("victim");
        fs::write(&victim, "whole").expect("file");
        std::os::unix::fs::symlink(&victim, &path).expect("link");
        Archive::create(&path, "top").expect("archive").finish().expect("archive");
        assert_eq!(fs::read_to_string(&victim).expect("file"), "whole");
        assert!(Archive::create(dir.path(), "top").is_err());
        assert!(Archive::create(&dir.path().join("none/x"), "top").is_err());
    }
}
