//! Packs the schemas of the reports, which are a tenth of their size then, and links the program.

#![expect(clippy::disallowed_methods, reason = "it reads the sources, not a host")]

use std::fs::{self, File};
use std::io::{Error, Write as _};
use std::path::PathBuf;

use flate2::{Compression, write::GzEncoder};

fn main() -> Result<(), Error> {
    println!("cargo::rerun-if-changed=docs/schema");
    // Nothing unwinds where a panic aborts, as it does in this profile: the index of what
    // unwinding needs is 100 kB.
    if std::env::var_os("PROFILE").is_some_and(|profile| profile == "release") {
        println!("cargo::rustc-link-arg-bins=-Wl,--no-eh-frame-hdr");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or_else(|| Error::other("OUT_DIR"))?);
    for entry in fs::read_dir("docs/schema")? {
        let path = entry?.path();
        // Those of older formats lie in folders of their own.
        if path.is_dir() {
            continue;
        }
        let name = path.file_name().unwrap_or_default();
        let packed = File::create(out.join(name).with_extension("json.gz"))?;
        let mut packed = GzEncoder::new(packed, Compression::best());
        packed.write_all(&fs::read(&path)?)?;
        packed.finish()?;
    }
    Ok(())
}
