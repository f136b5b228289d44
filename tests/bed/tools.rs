//! Other programs, run to their end.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Standard output of `program`, or what it said when it failed.
pub(crate) fn run<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Result<String, String> {
    let output = Command::new(program)
        .args(args)
        .output()
        .map_err(|e| format!("cannot start {program}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let args: Vec<_> = args.iter().map(|a| a.as_ref().to_string_lossy()).collect();
    Err(format!(
        "{program} {}: {}\n{}{}",
        args.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// The project's root.
pub(crate) fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Folder of what the image builder makes for `what` ("vm", "root" or "linux").
/// The builder takes seconds to find what it has built, so it is asked once.
pub(crate) fn image(what: &str, flavour: &str) -> Result<PathBuf, String> {
    type Built = HashMap<(String, String), Result<PathBuf, String>>;
    static BUILT: Mutex<Option<Built>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built
        .get_or_insert_default()
        .entry((what.to_owned(), flavour.to_owned()))
        .or_insert_with(|| build(what, flavour))
        .clone()
}

fn build(what: &str, flavour: &str) -> Result<PathBuf, String> {
    let build = project().join("tests/vm/image/build.sh");
    let out = run("sh", &[build.as_os_str(), what.as_ref(), flavour.as_ref()])?;
    let path = PathBuf::from(out.lines().last().unwrap_or_default());
    if path.is_dir() {
        Ok(path)
    } else {
        Err(format!("{}: printed no folder but {out:?}", build.display()))
    }
}
