//! `ibprov config`: what the configuration is, and what is wrong with it.

use std::io::Write;

use serde_json::json;

use super::exit;
use crate::cli::{ConfigVerb, Format};
use crate::config::{self, Loaded, Problems, Setting};
use crate::host::terminal;

/// Answer for the configuration that [`config::load`] gave.
///
/// # Errors
/// The answer cannot be written.
pub fn run(
    verb: ConfigVerb,
    loaded: Result<Loaded, Problems>,
    format: Format,
) -> anyhow::Result<u8> {
    let mut out = std::io::stdout();
    if verb == ConfigVerb::Schema {
        writeln!(out, "{:#}", config::schema())?;
        return Ok(exit::GOOD);
    }
    match (loaded, format) {
        (Ok(loaded), Format::Json) => writeln!(out, "{:#}", good_json(verb, &loaded))?,
        (Ok(loaded), Format::Text) => match verb {
            ConfigVerb::Show { changed } => {
                write!(out, "{}", config::to_toml(&shown(&loaded, changed)))?;
            }
            ConfigVerb::Check | ConfigVerb::Schema => write!(out, "{}", good_text(&loaded))?,
        },
        (Err(problems), Format::Json) => {
            writeln!(out, "{:#}", problems.to_json())?;
            return Ok(exit::CANNOT_BEGIN);
        }
        (Err(problems), Format::Text) => {
            // The errors are what `check` was asked for; `show` was asked for
            // something that a pipe may be waiting for.
            if verb == ConfigVerb::Check {
                let colour = terminal::wants_colour(&out);
                writeln!(out, "{}", problems.render(colour))?;
            } else {
                complain(&problems)?;
            }
            return Ok(exit::CANNOT_BEGIN);
        }
    }
    Ok(exit::GOOD)
}

/// Print what is wrong with the configuration to standard error, in colour
/// where that is wanted. For any verb that cannot begin because of it.
///
/// # Errors
/// Standard error cannot be written to.
pub fn complain(problems: &Problems) -> std::io::Result<()> {
    let mut err = std::io::stderr();
    let colour = terminal::wants_colour(&err);
    writeln!(err, "{}", problems.render(colour))
}

fn shown(loaded: &Loaded, changed: bool) -> Vec<Setting> {
    match changed {
        true => config::changed(&loaded.effective),
        false => loaded.effective.clone(),
    }
}

fn good_text(loaded: &Loaded) -> String {
    let Loaded { files, not_read, .. } = loaded;
    let count = match files.len() {
        0 => "no file, the defaults hold".to_owned(),
        1 => "1 file".to_owned(),
        n => format!("{n} files"),
    };
    let mut text = format!("configuration is good: {count}\n");
    for file in files {
        text.push_str(&format!("  {file}\n"));
    }
    if !not_read.is_empty() {
        text.push_str("not read:\n");
    }
    for (file, why) in not_read {
        text.push_str(&format!("  {file}: {why}\n"));
    }
    text
}

fn good_json(verb: ConfigVerb, loaded: &Loaded) -> serde_json::Value {
    let not_read = || -> serde_json::Value {
        let files = loaded.not_read.iter();
        files.map(|(file, why)| json!({"file": file, "why": why})).collect()
    };
    match verb {
        ConfigVerb::Show { changed } => json!({
            "schema": 1, "files": loaded.files, "settings": config::to_json(&shown(loaded, changed)),
        }),
        ConfigVerb::Check | ConfigVerb::Schema => json!({
            "schema": 1, "good": true, "files": loaded.files, "not_read": not_read(),
            "problems": [], "more": 0,
        }),
    }
}
