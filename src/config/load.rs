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
    /// Without what is left out because of `problems`.
    pub config: Config,
    /// Everything that is wrong, over all files.
    pub problems: Problems,
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

    /// The same, if nothing is wrong.
    ///
    /// # Errors
    /// Everything that is wrong, over all files.
    pub fn whole(self) -> Result<Self, Problems> {
        if self.problems.is_empty() {
            Ok(self)
        } else {
            let Self { mut problems, files, not_read, .. } = self;
            (problems.files, problems.not_read) = (files, not_read);
            Err(problems)
        }
    }
}

/// Reads the configuration below `root`, or only the file `only`.
pub fn load(root: &Root, only: Option<&Path>) -> Loaded {
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
/// Everything that is wrong, over all files.
pub fn load_with(root: &Root, planned: &[(String, String)]) -> Result<Loaded, Problems> {
    let mut found = config_files::read(root, None);
    for (path, text) in planned {
        found.add_drop_in(path, text);
    }
    loaded(found, Some(REMEDY)).whole()
}

fn loaded(found: ConfigFiles, remedy: Option<&str>) -> Loaded {
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
        not_read.map(|(path, why)| (harmless(&path), harmless(&why))).collect();
    Loaded { not_read, ..resolve_right(sources, problems) }
}

/// The configuration that these files make, the weakest first. Pure; for who
/// has the text already.
///
/// # Errors
/// `problems` and everything else that is wrong.
pub fn resolve(sources: Vec<Source>, problems: Problems) -> Result<Loaded, Problems> {
    resolve_right(sources, problems).whole()
}

/// The same, without what has an error. `problems` are those of files that could not be read.
pub fn resolve_right(sources: Vec<Source>, mut problems: Problems) -> Loaded {
    let mut lacks_file = !problems.is_empty();
    let mut files = Vec::new();
    let mut merged = Merged::defaults();
    // Without what was recovered of files that are not TOML.
    let mut right = Merged::defaults();
    for source in sources {
        let source = Arc::new(source);
        let (draft, is_toml) = draft::read(&source, &mut problems);
        if is_toml {
            right.add(draft.clone());
        }
        lacks_file |= !is_toml;
        merged.add(draft);
        files.push(harmless(&source.path));
    }
    let mut config = validate::build(&merged, &mut problems);
    if !problems.is_empty() {
        problems.sort(&files);
        merged = right;
        config = right_of(&mut merged, lacks_file);
    }
    Loaded { config, problems, files, not_read: Vec::new(), merged }
}

/// What is right of `merged`, of which what is wrong is left out.
fn right_of(merged: &mut Merged, mut lacks_file: bool) -> Config {
    merged.leave_out_broken();
    loop {
        if lacks_file {
            merged.lack_file();
        }
        let mut problems = Problems::default();
        let config = validate::build(merged, &mut problems);
        // Each turn leaves out one thing more, or all that can contradict.
        if problems.is_empty() {
            return config;
        }
        let is_more = merged.leave_out(&problems);
        if !is_more && lacks_file {
            return config;
        }
        lacks_file |= !is_more;
    }
}
