//! From files to the configuration: read, merged, validated.

use std::path::Path;
use std::sync::Arc;

use super::effective::{self, Setting};
use super::merge::Merged;
use super::problem::{Problem, Problems, Source};
use super::{Config, draft, validate};
use crate::host::Root;
use crate::host::config_files::{self, ConfigFiles};
use crate::names::harmless;

/// The configuration of a tree, and how it came to be.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    /// The files that were read, in the order in which they were applied.
    pub files: Vec<String>,
    /// What lies beside them and was not read, with why.
    pub not_read: Vec<(String, String)>,
    merged: Merged,
}

impl Loaded {
    /// Each effective value with its origin.
    pub fn effective(&self) -> Vec<Setting> {
        effective::settings(&self.merged, &self.config)
    }
}

/// Reads the configuration below `root`, or only the file `only`.
///
/// # Errors
/// Everything that is wrong, over all files.
pub fn load(root: &Root, only: Option<&Path>) -> Result<Loaded, Problems> {
    let found = config_files::read(root, only);
    let remedy = match (only, root.is_live()) {
        (None, _) => Some(REMEDY),
        (Some(_), true) => None,
        (Some(_), false) => Some("--config FILE is looked up in the tree of --root"),
    };
    loaded(found, remedy)
}

/// What to do about a file that cannot be read.
const REMEDY: &str = "correct, rename or remove it; to mask a file of that name with lower precedence, link it to /dev/null";

/// The configuration that the tree would have with these drop-ins, path and text, too.
///
/// # Errors
/// As [`load`].
pub fn load_with(root: &Root, planned: &[(String, String)]) -> Result<Loaded, Problems> {
    let mut found = config_files::read(root, None);
    for (path, text) in planned {
        found.add_drop_in(path, text);
    }
    loaded(found, Some(REMEDY))
}

fn loaded(found: ConfigFiles, remedy: Option<&str>) -> Result<Loaded, Problems> {
    let mut problems = Problems::default();
    for error in &found.errors {
        let problem = Problem::new(format!("cannot read the configuration: {error}"));
        problems.push(match remedy {
            Some(remedy) => problem.help(remedy),
            None => problem,
        });
    }
    let mut sources = Vec::new();
    for (path, content) in found.files {
        match Source::new(path, content) {
            Ok(source) => sources.push(source),
            Err(problem) => problems.push(problem),
        }
    }
    let not_read = found.not_read.into_iter();
    let not_read: Vec<(String, String)> =
        not_read.map(|file| (harmless(&file.path), harmless(&file.why.to_string()))).collect();
    match resolve(sources, problems) {
        Ok(loaded) => Ok(Loaded { not_read, ..loaded }),
        Err(mut problems) => {
            problems.not_read = not_read;
            Err(problems)
        }
    }
}

/// The configuration that these files make, the weakest first. Pure; for who
/// has the text already.
///
/// # Errors
/// `problems` and everything else that is wrong.
pub fn resolve(sources: Vec<Source>, mut problems: Problems) -> Result<Loaded, Problems> {
    let mut merged = Merged::defaults();
    let mut files = Vec::new();
    for source in sources {
        let source = Arc::new(source);
        merged.add(draft::read(&source, &mut problems));
        files.push(harmless(&source.path));
    }
    let config = validate::build(&merged, &mut problems);
    if !problems.is_empty() {
        problems.sort(&files);
        problems.files = files;
        return Err(problems);
    }
    Ok(Loaded { config, files, not_read: Vec::new(), merged })
}
