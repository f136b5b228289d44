//! Packs texts that the program rarely needs, which are a tenth of their size then: the schemas
//! of the reports in one, since they repeat each other, and the data of the rules of `check`.

#![expect(clippy::disallowed_methods, reason = "it reads the sources, not a host")]

use std::fs::{self, File};
use std::io::{Error, Write as _};
use std::path::{Path, PathBuf};

use flate2::{Compression, write::GzEncoder};

fn main() -> Result<(), Error> {
    println!("cargo::rerun-if-changed=docs/schema");
    let mut paths = Vec::new();
    for entry in fs::read_dir("docs/schema")? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut schemas = Vec::new();
    // Those of older formats lie in folders of their own.
    for path in paths.iter().filter(|path| path.is_file()) {
        let name = path.file_stem().unwrap_or_default().display();
        let text = fs::read_to_string(path)?;
        // A string of JSON has no line end.
        let text: String = text.lines().map(str::trim_start).collect();
        schemas.push(format!("\"{name}\":{text}"));
    }
    pack("schemas.json", &format!("{{{}}}", schemas.join(",")))?;
    for name in ["messages.toml", "causes.toml"] {
        let path = Path::new("src/check/rules").join(name);
        println!("cargo::rerun-if-changed={}", path.display());
        pack(name, &fs::read_to_string(path)?)?;
    }
    Ok(())
}

/// Writes `text` to `name.gz` of the folder from which the program includes it.
fn pack(name: &str, text: &str) -> Result<(), Error> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or_else(|| Error::other("OUT_DIR"))?);
    let packed = File::create(out.join(format!("{name}.gz")))?;
    let mut packed = GzEncoder::new(packed, Compression::best());
    packed.write_all(text.as_bytes())?;
    packed.finish()?;
    Ok(())
}
