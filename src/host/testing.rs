#![allow(clippy::disallowed_methods, reason = "the trees that tests look at")]

//! Trees and namespaces for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::panic::resume_unwind;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

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

/// How many times this thread has read so far (`proc_pid_io(5)`): for tests of how the number of
/// reads grows, which no load of the machine changes.
pub(crate) fn reads() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").expect("the kernel counts");
    let count = io.lines().find_map(|line| line.strip_prefix("syscr: "));
    count.expect("a count").parse().expect("a number")
}

/// What `test` gives on a thread that has a network of its own, with nothing but a
/// loopback netdev that is down, and a `/sys` and an empty `/run` to go with it. Needs root.
pub(crate) fn in_own_network<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    let apart = || {
        let own = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS;
        unshare(own).expect("namespaces of its own, for which root is needed");
        // Nothing of what follows reaches the host.
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        let none = None::<&str>;
        mount(none, "/", none, private, none).expect("private mounts");
        for (kind, at) in [("sysfs", "/sys"), ("tmpfs", "/run")] {
            mount(none, at, Some(kind), MsFlags::empty(), none).expect(at);
        }
        test()
    };
    std::thread::scope(|threads| threads.spawn(apart).join()).unwrap_or_else(|e| resume_unwind(e))
}
