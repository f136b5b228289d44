#![allow(
    clippy::disallowed_methods,
    reason = "the owner of a directory of the tool's is looked at"
)]

//! Runs mstconfig, or mlxconfig of MFT, which is the same program. While it works it holds a
//! semaphore of the adapter, and one that is ended leaves it taken: every later call fails. It
//! holds back SIGINT, SIGQUIT and SIGTERM in most of its accesses, but not where it asks for the
//! number of ports (MGIR, mlxconfig/mlxcfg_utils.cpp). So nothing of ibprov's ends it, nor does a
//! terminal that is closed.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::clock;
use super::lock::Held;
use super::process::{self, Output};

/// What it is called: of mstflint, and of MFT.
const NAMES: [&str; 2] = ["mstconfig", "mlxconfig"];

/// Where it keeps its lock files, whatever TMPDIR is (mtcr_ul, tools_cif).
const LOCK_FILES: &str = "/tmp/mstflint_lockfiles";

/// How long it may take: a query of all settings of a ConnectX-5 takes 5 s, and it waits up to
/// 30 s for a semaphore of the firmware. Then it is left alone.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Tool {
    pub name: &'static str,
    path: PathBuf,
}

/// The tool, if one is installed.
pub fn find() -> Option<Tool> {
    NAMES.into_iter().find_map(|name| Some(Tool { name, path: process::find(name)? }))
}

/// Why the tool is not run on this host, if so: who owns the directory of its lock files can
/// have it write anywhere.
pub fn hindrance() -> Option<String> {
    hindrance_by(LOCK_FILES)
}

fn hindrance_by(lock_files: &str) -> Option<String> {
    match std::fs::symlink_metadata(lock_files) {
        Ok(meta) if !meta.is_dir() || meta.uid() != 0 => Some(format!(
            "{lock_files}, where the tool keeps its lock files, is not a directory of root's (user {}): remove it",
            meta.uid()
        )),
        _ => None,
    }
}

impl Tool {
    /// The same of MFT, where this is mstconfig and that is installed too.
    pub fn other(&self) -> Option<Self> {
        let later = NAMES.into_iter().skip_while(|name| *name != self.name).skip(1);
        later.into_iter().find_map(|name| Some(Self { name, path: process::find(name)? }))
    }

    /// Run it with `args`. It holds `lock` too, for as long as it runs.
    ///
    /// # Errors
    /// It cannot be started or waited for.
    pub fn run(&self, args: &[String], lock: &mut Held) -> io::Result<Output> {
        run(&self.path, args, lock, LIMIT)
    }
}

fn run(path: &Path, args: &[String], lock: &mut Held, limit: Duration) -> io::Result<Output> {
    let until = clock::now() + limit;
    process::output_unkilled(path, args, lock, until)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::host::lock::{LockError, Locks};

    /// A program that stands for the tool, in a directory of its own, and the locks there.
    fn stand_in(script: &str) -> (tempfile::TempDir, PathBuf, Locks) {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("mstconfig");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("mode");
        let locks = Locks::in_test(dir.path().join("lock"));
        (dir, path, locks)
    }

    fn once(script: &str, limit: Duration) -> Output {
        let (_dir, path, locks) = stand_in(script);
        let mut lock = locks.try_take("a").expect("free");
        run(&path, &["x y".to_owned()], &mut lock, limit).expect("it runs")
    }

    #[test]
    fn lock_files_that_another_user_has_a_say_in_hinder() {
        let dir = tempfile::tempdir().expect("directory");
        let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        assert_eq!(hindrance_by(&at("none")), None);
        fs::create_dir(at("of-others")).expect("directory");
        fs::write(at("file"), "").expect("file");
        std::os::unix::fs::symlink("of-others", at("link")).expect("link");
        if process::is_root() {
            assert_eq!(hindrance_by(&at("of-others")), None);
            std::os::unix::fs::chown(at("of-others"), Some(65_534), None).expect("owner");
        }
        for name in ["of-others", "file", "link"] {
            let path = at(name);
            let why = hindrance_by(&path).expect(name);
            let said = format!(
                "{path}, where the tool keeps its lock files, is not a directory of root's (user "
            );
            assert!(why.starts_with(&said) && why.ends_with("): remove it"), "{why}");
        }
    }

    #[test]
    fn what_it_says_and_how_it_ends_is_told() {
        let output = once("echo \"out $1 $LC_ALL\"; echo err >&2; exit 3", Duration::from_secs(20));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "out x y C");
        assert_eq!((output.ended, output.stderr.as_str()), (true, "err"));
        assert_eq!(output.failure.and_then(|f| f.exit_code()), Some(3));
        // As a shell tells of a signal.
        let killed = once("exit 137", Duration::from_secs(20));
        assert_eq!(killed.failure.and_then(|f| f.exit_code()), Some(137));
    }

    #[test]
    fn it_has_no_input_and_a_session_and_heeds_no_hangup() {
        let script =
            "readlink /proc/$$/fd/0; ps -o sid= -p $$; echo $$; grep SigIgn /proc/$$/status";
        let output = once(script, Duration::from_secs(20));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!((lines[0], lines[1]), ("/dev/null", lines[2]));
        let ignored = lines[3].rsplit('\t').next().expect("a mask");
        let ignored = u64::from_str_radix(ignored, 16).expect("a mask");
        for signal in [1, 13, 15, 25] {
            assert_ne!(ignored >> (signal - 1) & 1, 0, "signal {signal} is not ignored");
        }
    }

    #[test]
    fn ten_megabytes_of_output_harm_nobody_and_endless_output_ends() {
        let output = once("head -c 10000000 /dev/zero; echo 1 >&2", Duration::from_secs(20));
        assert!(output.ended && output.stdout.len() <= 4 << 20 && output.stderr == "1");
        // Its file does not grow for ever: it is told so by EFBIG, and not by a signal.
        let output = once("cat /dev/zero; echo rc $? >&2", Duration::from_secs(60));
        assert!(output.ended && output.stderr.contains("rc 1"), "{}", output.stderr);
    }

    #[test]
    fn one_that_hangs_is_left_alone_with_its_lock() {
        // It would note a signal that it gets; of SIGKILL it could not.
        let script = "trap 'echo TERM >>\"$0.notes\"' TERM
trap 'echo INT >>\"$0.notes\"' INT
touch \"$0.ready\"
while ! [ -e \"$0.end\" ]; do sleep 0.05; done
echo ended >>\"$0.notes\"";
        let (dir, path, locks) = stand_in(script);
        let mut lock = locks.try_take("a").expect("free");
        let at = |name: &str| dir.path().join(format!("mstconfig.{name}"));
        let output = run(&path, &[], &mut lock, Duration::from_millis(500)).expect("it runs");
        let pid = output.left.expect("it is still there");
        assert!(!output.ended && output.failure.is_none());
        drop(lock);
        let until = clock::now() + Duration::from_secs(30);
        while !at("ready").exists() {
            assert!(clock::now() < until, "it has not begun");
            std::thread::yield_now();
        }
        // As who stops a unit or shuts the system down.
        let sent = nix::sys::signal::Signal::SIGTERM;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.cast_signed()), sent).expect("sent");
        match locks.try_take("a") {
            Err(LockError::Busy { owner }) => assert_eq!(owner, Some(pid)),
            other => panic!("{other:?}"),
        }
        fs::write(at("end"), "").expect("file");
        locks.take_until("a", until).expect("it ends with the child");
        assert_eq!(fs::read_to_string(at("notes")).expect("notes"), "ended\n");
    }
}
