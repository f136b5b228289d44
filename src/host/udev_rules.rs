#![allow(clippy::disallowed_methods, reason = "files of udev's that are ours to write")]

//! The files of rules that ibprov writes for udev: each is whole, and udev has read it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{answer, clock, process, state};

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
                fs::create_dir_all(dir).map_err(|e| failed(dir, &e))?;
                state::replace(path, content).map_err(|e| failed(path, &e))?;
            }
            None => fs::remove_file(path).map_err(|e| failed(path, &e))?,
        }
    }
    tell()?;
    fs::remove_file(untold).map_err(|e| failed(untold, &e))
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
    program
        .map(str::to_owned)
        .ok_or("ibprov's own path has a character that a rule of udev cannot have".to_owned())
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
    let args = ["control", "--reload"];
    let until = clock::monotonic_usec() + 5_000_000;
    let told =
        process::output_until("udevadm", &args, until).and_then(|o| o.into_text("udevadm", &args));
    told.map(drop).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
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
    }
}
