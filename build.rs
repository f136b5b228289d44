//! Packs the schemas of the reports, which are a tenth of their size then.

#![expect(clippy::disallowed_methods, reason = "it reads the sources, not a host")]

use std::fs::{self, File};
use std::io::{Error, Write as _};
use std::path::PathBuf;

use flate2::{Compression, write::GzEncoder};

fn main() -> Result<(), Error> {
    println!("cargo::rerun-if-changed=docs/schema");
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
