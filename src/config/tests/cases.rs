//! Each `cases/NAME.toml`, with `NAME.1.toml` and so on as the files that come after it, is
//! answered with `NAME.expected`: everything that is wrong, or what `config show --changed`
//! prints. A new case is two files; `UPDATE_EXPECT=1` writes the expected one.

use expect_test::expect_file;
use regex::Regex;

use super::files::{read, tree};
use super::loaded;
use crate::config::{Config, Loaded, changed, to_toml};

#[test]
fn every_case_is_answered_as_expected() {
    let files = tree("src/config/tests/cases");
    let is_first = |path: &&std::path::PathBuf| {
        path.extension().is_some_and(|extension| extension == "toml")
            && path.file_stem().is_some_and(|stem| !stem.to_string_lossy().contains('.'))
    };
    for first in files.iter().filter(is_first) {
        let further = (1..).map(|n| first.with_extension(format!("{n}.toml")));
        let mut texts = vec![read(first)];
        texts.extend(further.take_while(|path| files.contains(path)).map(|path| read(&path)));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let answer = match loaded(&texts) {
            Ok(loaded) => good(&loaded),
            Err(problems) => problems.render(false),
        };
        expect_file![first.with_extension("expected")].assert_eq(&format!("{answer}\n"));
    }
}

/// What is shown of a good configuration; all of it can be read again.
fn good(before: &Loaded) -> String {
    let shown = to_toml(&before.effective());
    let again = loaded(&[&shown]).unwrap_or_else(|problems| panic!("{shown}{problems}"));
    // Its places are its own.
    let origins = Regex::new(r#"origin: ".*""#).expect("pattern");
    let settings = |config: &Config| origins.replace_all(&format!("{config:#?}"), "").into_owned();
    assert_eq!(settings(&again.config), settings(&before.config), "{shown}");
    to_toml(&changed(&before.effective())).trim_end().to_owned()
}
