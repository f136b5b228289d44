//! Packs texts that the program rarely needs, which are a tenth of their size then: the data of
//! the rules of `check`.

#![expect(clippy::disallowed_methods, reason = "it reads the sources, not a host")]

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
    Ok(())
}
