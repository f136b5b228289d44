#![allow(clippy::disallowed_methods, reason = "files of udev's that are ours to write")]

//! The files of rules that ibprov writes for udev: each is whole, and udev has read it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use super::systemctl::ask_within;
use super::{answer, state};

/// Where udev reads the rules that are gone at reboot (udev(7)).
pub(super) const DIRECTORY: &str = "/run/udev/rules.d";

/// Give the file `name` this content, or remove it, and have udev read its rules. Nothing
/// is done if it is so already.
///
/// # Errors
/// The path that failed, with the system's answer, or udev could not be told.
pub(super) fn put(name: &str, content: Option<&str>) -> Result<(), String> {
    let untold = Path::new(state::RUN_DIR).join(format!("untold-{name}"));
    state::directory().map_err(|e| failed(Path::new(state::RUN_DIR), &e))?;
    change(&Path::new(DIRECTORY).join(name), content, &untold, tell_udev)
}

/// As [`put`]. The file `untold` is there from before the change until udev was told: who is
/// killed in between leaves it, and the next one tells udev of what is right already.
fn change(
    path: &Path,
    content: Option<&str>,
    untold: &Path,
    tell: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let is_right = match fs::read_to_string(path) {
        Ok(old) => content.is_some_and(|content| content == old),
        Err(e) => content.is_none() && e.kind() == io::ErrorKind::NotFound,
    };
    if is_right && !untold.exists() {
        return Ok(());
    }
    if !is_right {
        fs::write(untold, "").map_err(|e| failed(untold, &e))?;
        match content {
            Some(content) => {
                let dir = path.parent().unwrap_or(Path::new(DIRECTORY));
                state::directories(dir).map_err(|e| failed(dir, &e))?;
                state::replace(path, content).map_err(|e| failed(path, &e))?;
            }
            None => remove(path)?,
        }
    }
    tell()?;
    remove(untold)
}

/// Remove the file; another run may have done so since it was looked at.
fn remove(path: &Path) -> Result<(), String> {
    state::remove_if_there(path).map_err(|e| failed(path, &e))
}

/// The names of the files in [`DIRECTORY`]; none where there is none.
pub(super) fn files() -> Vec<String> {
    let entries = fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The path of the file `name`.
pub(super) fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// The path of ibprov itself, for a rule.
pub(super) fn own_path() -> Result<String, String> {
    let program =
        fs::read_link("/proc/self/exe").map_err(|e| format!("/proc/self/exe: {}", answer(&e)))?;
    let program = installed(&program)?;
    let is_tame = |b: u8| b.is_ascii_alphanumeric() || b"/_.-".contains(&b);
    let program = program.to_str().filter(|text| text.bytes().all(is_tame));
    let program =
        program.ok_or("ibprov's own path has a character that a rule of udev cannot have")?;
    match may_be_replaced(Path::new(program)).map_err(|e| failed(Path::new(program), &e))? {
        None => Ok(program.to_owned()),
        Some(who) => Err(format!(
            "udev runs as root what its rules name, and not only root can replace {program} ({who}): start ibprov from where its package has installed it, as /usr/sbin/ibprov"
        )),
    }
}

/// Why not only root can put another file in the place of `program`; a group that root has let
/// write may. The path has no links.
fn may_be_replaced(program: &Path) -> io::Result<Option<String>> {
    for path in program.ancestors() {
        let meta = fs::metadata(path)?;
        // In a directory with the sticky bit nobody replaces root's files (inode(7)).
        let is_guarded = meta.is_dir() && meta.mode() & 0o1000 != 0;
        if meta.uid() != 0 {
            return Ok(Some(format!("{} belongs to user {}", path.display(), meta.uid())));
        }
        if meta.mode() & 0o002 != 0 && !is_guarded {
            return Ok(Some(format!("everybody can write to {}", path.display())));
        }
    }
    Ok(None)
}

/// What is installed where the program was that `/proc/PID/exe` names. The kernel adds to the
/// path that the file is not there any more (`d_path()`, fs/d_path.c): an upgrade has put
/// another one in its place.
fn installed(program: &Path) -> Result<PathBuf, String> {
    let was = program.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    let known = [Some(program.to_owned()), was];
    known
        .into_iter()
        .flatten()
        .find(|path| path.is_file())
        .ok_or_else(|| format!("{}: ibprov is not installed there any more", program.display()))
}

fn failed(path: &Path, e: &io::Error) -> String {
    format!("{}: {}", path.display(), answer(e))
}

/// Have udevd read its rules: by itself it looks for new files every 3 s only.
fn tell_udev() -> Result<(), String> {
    let told = ask_within(Duration::from_secs(5), "udevadm", &["control", "--reload"]);
    told.map(drop).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_rule_names_the_program_that_an_upgrade_has_put_in_the_place_of_this_one() {
        let dir = tempfile::tempdir().expect("directory");
        let (path, new) = (dir.path().join("ibprov"), dir.path().join("ibprov.dpkg-new"));
        let program = |path: &Path| fs::copy("/bin/sleep", path).expect("a program");
        program(&path);
        let mut running = std::process::Command::new(&path).arg("60").spawn().expect("started");
        let exe = || fs::read_link(format!("/proc/{}/exe", running.id())).expect("a link");
        assert_eq!(installed(&exe()), Ok(path.clone()));
        program(&new);
        fs::rename(&new, &path).expect("upgraded");
        assert!(exe().to_string_lossy().ends_with(" (deleted)"), "{:?}", exe());
        assert_eq!(installed(&exe()), Ok(path.clone()));
        fs::remove_file(&path).expect("removed");
        let said = installed(&exe()).expect_err("no program");
        assert!(said.ends_with("ibprov is not installed there any more"), "{said}");
        running.kill().and_then(|()| running.wait()).expect("ended");
    }

    #[test]
    fn a_program_is_named_only_if_nobody_but_root_can_replace_it() {
        let sleep = fs::canonicalize("/bin/sleep").expect("a program");
        assert_eq!(may_be_replaced(&sleep).expect("found"), None);
        let dir = tempfile::tempdir().expect("directory");
        let home = dir.path().join("home");
        fs::create_dir(&home).expect("directory");
        fs::set_permissions(&home, PermissionsExt::from_mode(0o777)).expect("mode");
        fs::copy(&sleep, home.join("ibprov")).expect("a program");
        let why = may_be_replaced(&home.join("ibprov")).expect("found");
        assert!(why.is_some(), "whoever runs this test");
        fs::remove_file(home.join("ibprov")).expect("removed");
        assert!(may_be_replaced(&home.join("ibprov")).is_err());
    }

    #[test]
    fn no_umask_lets_others_write_where_udev_reads_its_rules() {
        let dir = tempfile::tempdir().expect("directory");
        let (path, untold) = (dir.path().join("udev/rules.d/61.rules"), dir.path().join("untold"));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Of this thread alone.
                nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS).expect("unshare");
                nix::sys::stat::umask(nix::sys::stat::Mode::empty());
                change(&path, Some("a"), &untold, || Ok(())).expect("written");
            });
        });
        for path in [path.parent(), path.parent().and_then(Path::parent)].into_iter().flatten() {
            let mode = fs::metadata(path).expect("made").mode();
            assert_eq!(mode & 0o7777, 0o755, "{}", path.display());
        }
    }

    #[test]
    fn udev_is_told_of_a_change_once_also_after_a_kill() {
        let dir = tempfile::tempdir().expect("directory");
        let (path, untold) = (dir.path().join("rules.d/61.rules"), dir.path().join("untold"));
        let run = |content, answers: Result<(), String>| {
            let mut told = 0;
            let done = change(&path, content, &untold, || {
                told += 1;
                answers
            });
            (done.is_ok(), told)
        };
        assert_eq!(run(None, Ok(())), (true, 0));
        // What a kill leaves is what a udev leaves that could not be told.
        assert_eq!(run(Some("a"), Err("killed".to_owned())), (false, 1));
        assert_eq!(fs::read_to_string(&path).expect("rules"), "a");
        assert_eq!(run(Some("a"), Ok(())), (true, 1));
        assert_eq!(run(Some("a"), Ok(())), (true, 0));
        assert_eq!(run(None, Err("killed".to_owned())), (false, 1));
        assert_eq!(run(None, Ok(())), (true, 1));
        assert!(!path.exists() && !untold.exists());
        assert_eq!(run(None, Ok(())), (true, 0));
        // Two runs at once: the other has told udev meanwhile.
        let other = || {
            fs::remove_file(&untold).map_err(|e| e.to_string())?;
            fs::remove_file(&path).map_err(|e| e.to_string())
        };
        assert_eq!(change(&path, Some("b"), &untold, other), Ok(()));
    }
}
