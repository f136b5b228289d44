//! Packs texts that the program rarely needs, which are a tenth of their size then. Lists of words that
//! the program names become constants.

#![expect(clippy::disallowed_methods, reason = "it reads the sources, not a host")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Error, Write as _};
use std::path::{Path, PathBuf};

use flate2::{Compression, write::GzEncoder};

fn main() -> Result<(), Error> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or_else(|| Error::other("OUT_DIR"))?);
    for path in [
        "check/rules/messages.toml",
        "check/rules/causes.toml",
        "check/rules/rules.toml",
        "check/ledger/words.toml",
        "config/foreign/openib.toml",
        "inventory/known.toml",
    ] {
        let path = Path::new("src").join(path);
        let name = path.file_name().ok_or_else(|| Error::other("a directory"))?.display();
        println!("cargo::rerun-if-changed={}", path.display());
        let packed = File::create(out.join(format!("{name}.gz")))?;
        let mut packed = GzEncoder::new(packed, Compression::best());
        packed.write_all(&fs::read(&path)?)?;
        packed.finish()?;
    }
    for (path, name) in [
        ("src/check/rules/rules.toml", "rules.rs"),
        ("src/check/evidence/words.toml", "words.rs"),
        ("src/opensm/options.toml", "options.rs"),
    ] {
        println!("cargo::rerun-if-changed={path}");
        let text = constants(&fs::read_to_string(path)?);
        fs::write(out.join(name), text.ok_or_else(|| Error::other(path))?)?;
    }
    Ok(())
}

/// `words` and `tells` of each table: a module for it, a constant for each list.
fn constants(tables: &str) -> Option<String> {
    let tables: toml::Table = tables.parse().ok()?;
    let mut text = String::new();
    for (name, table) in &tables {
        let lists = ["words", "tells"].into_iter().filter_map(|key| table.get(key)?.as_table());
        let mut constants = String::new();
        for (list, words) in lists.flatten() {
            let list = list.replace('-', "_").to_uppercase();
            let words = words.as_array()?.iter().map(toml::Value::as_str);
            let words = words.collect::<Option<Vec<_>>>()?;
            writeln!(constants, "    pub const {list}: &[&str] = &{words:?};").ok()?;
        }
        if !constants.is_empty() {
            writeln!(text, "pub mod {} {{\n{constants}}}", name.replace('-', "_")).ok()?;
        }
    }
    Some(text)
}
