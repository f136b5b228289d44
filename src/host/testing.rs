#![allow(clippy::disallowed_methods, reason = "the trees that tests look at")]

//! Trees for tests.

use std::fs;
use std::os::unix::fs::symlink;

/// A directory with these files, by path and text, and these symbolic links, by
/// path and target.
pub(crate) fn tree(files: &[(&str, &str)], links: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("directory");
    let place = |path: &str| {
        let path = dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("parent")).expect("directory");
        path
    };
    for (path, text) in files {
        fs::write(place(path), text).expect("file");
    }
    for (path, target) in links {
        symlink(target, place(path)).expect("link");
    }
    dir
}
