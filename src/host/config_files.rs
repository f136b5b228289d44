//! Finds and reads the configuration files below a root, as systemd merges
//! its own (systemd-system.conf(5), "CONFIGURATION DIRECTORIES AND
//! PRECEDENCE"). What they mean is decided in [`crate::config`].

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{ReadError, Root};

/// The strongest first.
const DIRECTORIES: [&str; 3] = ["/etc/ibprov", "/run/ibprov", "/usr/lib/ibprov"];

/// More than any configuration needs.
const SIZE_LIMIT: u64 = 1 << 20;

/// What was found, in the order in which it is applied: the weakest first.
#[derive(Debug, Default)]
pub struct ConfigFiles {
    /// Path inside the tree and content, which may not be UTF-8.
    pub files: Vec<(String, Vec<u8>)>,
    /// What exists but could not be read.
    pub errors: Vec<ReadError>,
    /// The paths of files that do not count, each with the reason.
    pub not_read: Vec<(String, String)>,
}

const BAD_NAME: &str = "the name does not end in .toml, or begins with a dot";
const IS_MASK: &str = "a link to /dev/null, which masks files of this name with lower precedence";

/// Reads the one file `only`, or all that belong to the configuration.
pub fn read(root: &Root, only: Option<&Path>) -> ConfigFiles {
    let mut found = ConfigFiles::default();
    match only {
        Some(path) => match path.to_str() {
            Some(path) => found.take(path, root.bytes(path, SIZE_LIMIT)),
            None => found.errors.push(ReadError::BadName { path: path.to_owned() }),
        },
        None => {
            main_file(root, &mut found);
            drop_ins(root, &mut found);
        }
    }
    found
}

fn main_file(root: &Root, found: &mut ConfigFiles) {
    let mut strongest: Option<String> = None;
    for directory in DIRECTORIES {
        let path = format!("{directory}/ibprov.toml");
        // A dangling link is a file that somebody wanted to be read.
        let is_link = root.is_link(&path);
        if let Some(by) = &strongest {
            if is_link || root.exists(&path) {
                found.leave_out(path, &format!("masked by {by}"));
            }
            continue;
        }
        if is_masked(root, &path) {
            found.leave_out(path.clone(), IS_MASK);
        } else {
            match root.bytes(&path, SIZE_LIMIT) {
                Err(e) if e.is_absent() && !is_link => continue,
                content => found.take(&path, content),
            }
        }
        strongest = Some(path);
    }
}

fn drop_ins(root: &Root, found: &mut ConfigFiles) {
    // By file name: the strongest directory's file, wherever the others are.
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for directory in DIRECTORIES {
        let directory = format!("{directory}/ibprov.d");
        match root.entries(&directory) {
            Ok(names) => {
                for name in names {
                    let path = format!("{directory}/{}", name.display());
                    let bytes = name.as_bytes();
                    if !bytes.ends_with(b".toml") || bytes.starts_with(b".") {
                        found.leave_out(path, BAD_NAME);
                        continue;
                    }
                    let name = match name.into_string() {
                        Ok(name) => name,
                        Err(name) => {
                            let path = Path::new(&directory).join(name);
                            found.errors.push(ReadError::BadName { path });
                            continue;
                        }
                    };
                    match paths.get(&name) {
                        Some(by) => found.leave_out(path, &format!("masked by {by}")),
                        None => drop(paths.insert(name, path)),
                    }
                }
            }
            Err(e) if e.is_absent() => {}
            Err(e) => found.errors.push(e),
        }
    }
    for path in paths.into_values() {
        if is_masked(root, &path) {
            found.leave_out(path, IS_MASK);
        } else {
            found.take(&path, root.bytes(&path, SIZE_LIMIT));
        }
    }
}

/// True for a link to `/dev/null`, also in a copied tree without `/dev`.
fn is_masked(root: &Root, path: &str) -> bool {
    root.link_name(path).as_deref() == Ok("null")
        && match root.bytes(path, 0) {
            Ok(_) => true,
            Err(e) => e.is_absent(),
        }
}

impl ConfigFiles {
    /// As if there were a drop-in with this text at `path`, in the strongest directory.
    pub fn add_drop_in(&mut self, path: &str, text: &str) {
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let is_drop_in = |path: &str| path.contains("/ibprov.d/");
        let own = name(path);
        self.files.retain(|(other, _)| !is_drop_in(other) || name(other) != own);
        let later = |(other, _): &(String, Vec<u8>)| is_drop_in(other) && name(other) > own;
        let at = self.files.iter().position(later).unwrap_or(self.files.len());
        self.files.insert(at, (path.to_owned(), text.as_bytes().to_vec()));
    }

    fn leave_out(&mut self, path: String, why: &str) {
        self.not_read.push((path, why.to_owned()));
    }

    fn take(&mut self, path: &str, content: Result<Vec<u8>, ReadError>) {
        match content {
            Ok(content) => self.files.push((path.to_owned(), content)),
            Err(e) => self.errors.push(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    fn paths(dir: &tempfile::TempDir) -> (Vec<String>, Vec<String>) {
        let root = Root::copy_at(dir.path()).expect("root");
        let found = read(&root, None);
        let errors = found.errors.iter().map(ToString::to_string).collect();
        (found.files.into_iter().map(|(path, _)| path).collect(), errors)
    }

    #[test]
    fn nothing_there_is_nothing_read() {
        assert_eq!(paths(&tree(&[], &[])), (vec![], vec![]));
    }

    #[test]
    fn the_strongest_main_file_and_drop_ins_by_name() {
        let dir = tree(
            &[
                ("usr/lib/ibprov/ibprov.toml", "vendor"),
                ("run/ibprov/ibprov.toml", "run"),
                ("usr/lib/ibprov/ibprov.d/10-a.toml", "a"),
                ("etc/ibprov/ibprov.d/50-b.toml", "b"),
                ("usr/lib/ibprov/ibprov.d/50-b.toml", "masked"),
                ("run/ibprov/ibprov.d/50-b.toml", "masked"),
                ("run/ibprov/ibprov.d/70-d.toml", "d"),
                ("usr/lib/ibprov/ibprov.d/70-d.toml", "masked"),
                ("run/ibprov/ibprov.d/90-c.toml", "c"),
                ("etc/ibprov/ibprov.d/20-note.txt", "no"),
            ],
            &[("etc/ibprov/ibprov.d/.#20-lock.toml", "nobody@host")],
        );
        let want = [
            "/run/ibprov/ibprov.toml",
            "/usr/lib/ibprov/ibprov.d/10-a.toml",
            "/etc/ibprov/ibprov.d/50-b.toml",
            "/run/ibprov/ibprov.d/70-d.toml",
            "/run/ibprov/ibprov.d/90-c.toml",
        ];
        assert_eq!(paths(&dir), (want.map(str::to_owned).to_vec(), vec![]));

        fs::create_dir_all(dir.path().join("etc/ibprov")).expect("directory");
        fs::write(dir.path().join("etc/ibprov/ibprov.toml"), "etc").expect("file");
        assert_eq!(paths(&dir).0.first().map(String::as_str), Some("/etc/ibprov/ibprov.toml"));
    }

    #[test]
    fn a_link_to_dev_null_masks() {
        let dir = tree(
            &[
                ("usr/lib/ibprov/ibprov.toml", "vendor"),
                ("usr/lib/ibprov/ibprov.d/10-a.toml", "vendor"),
            ],
            &[
                ("etc/ibprov/ibprov.toml", "/dev/null"),
                ("run/ibprov/ibprov.d/10-a.toml", "../../../dev/null"),
            ],
        );
        assert_eq!(paths(&dir), (vec![], vec![]));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_not_an_absence() {
        let dir = tree(
            &[("usr/lib/ibprov/ibprov.toml", "vendor"), ("etc/ibprov/ibprov.d/10-dir.toml/x", "")],
            &[("etc/ibprov/ibprov.toml", "gone.toml")],
        );
        let errors = [
            "/etc/ibprov/ibprov.toml: ENOENT: No such file or directory",
            "/etc/ibprov/ibprov.d/10-dir.toml: EISDIR: Is a directory",
        ];
        assert_eq!(paths(&dir), (vec![], errors.map(str::to_owned).to_vec()));
    }

    #[test]
    fn a_name_that_is_not_utf_8_is_an_error_where_it_would_be_a_drop_in() {
        let dir = tree(&[("run/ibprov/ibprov.d/10-a.toml", "a")], &[]);
        let names: [&[u8]; 3] = [b"50-k\xf6ln.toml", b"50-k\xf6ln.toml~", b".k\xf6ln.toml"];
        for name in names {
            let path = dir.path().join("run/ibprov/ibprov.d").join(OsStr::from_bytes(name));
            fs::write(path, "lost").expect("file");
        }
        let errors = vec![
            r#""/run/ibprov/ibprov.d/50-k\xF6ln.toml": the file name is not UTF-8"#.to_owned(),
        ];
        assert_eq!(paths(&dir), (vec!["/run/ibprov/ibprov.d/10-a.toml".to_owned()], errors));
        let found = read(&Root::copy_at(dir.path()).expect("root"), None);
        let not_read: Vec<_> = found.not_read.into_iter().map(|(path, _)| path).collect();
        let left = [".k\u{fffd}ln.toml", "50-k\u{fffd}ln.toml~"];
        assert_eq!(not_read, left.map(|name| format!("/run/ibprov/ibprov.d/{name}")));
    }

    #[test]
    fn more_than_a_mebibyte_is_refused() {
        let dir = tree(&[("etc/ibprov/ibprov.toml", &"#".repeat((1 << 20) + 1))], &[]);
        let errors = vec!["/etc/ibprov/ibprov.toml: larger than 1048576 bytes".to_owned()];
        assert_eq!(paths(&dir), (vec![], errors));
    }

    #[test]
    fn one_file_is_only_that_file() {
        let dir = tree(&[("etc/ibprov/ibprov.toml", "etc"), ("site.toml", "site")], &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let found = read(&root, Some(Path::new("/site.toml")));
        assert_eq!(found.files, [("/site.toml".to_owned(), b"site".to_vec())]);
        let found = read(&root, Some(Path::new("/none.toml")));
        assert_eq!(found.errors.len(), 1);
    }
}
