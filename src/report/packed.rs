//! What build.rs has packed.

use std::io::{self, Read as _};

use flate2::read::GzDecoder;

/// The text that is packed in `bytes`.
///
/// # Errors
/// It is no such text.
pub fn unpacked(bytes: &[u8]) -> io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text)?;
    Ok(text)
}
