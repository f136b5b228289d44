//! Reading back what another run, perhaps of another version, has written, and what build.rs has
//! packed.

use std::io::{self, Read as _};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};

use super::SCHEMA;

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Its format has another version than this ibprov knows.
    #[error("the report has schema {found}, but this ibprov reads schema {SCHEMA}")]
    Schema {
        /// The version that it says.
        found: u64,
    },
    /// It is no such report.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Whether a report of the format's version `found` can be read.
///
/// # Errors
/// It cannot.
pub fn check_schema(found: u64) -> Result<(), ReadError> {
    if found == u64::from(SCHEMA) { Ok(()) } else { Err(ReadError::Schema { found }) }
}

/// The report in `json`. Fields that are not known are passed over; those that
/// an older version did not write are empty.
///
/// # Errors
/// It has another schema, or is no such report.
pub fn read<T: DeserializeOwned>(json: &str) -> Result<T, ReadError> {
    #[derive(Deserialize)]
    struct Head {
        schema: u64,
        exit_code: Option<u8>,
    }
    let Head { schema, exit_code } = serde_json::from_str(json)?;
    check_schema(schema)?;
    exit_code.ok_or_else(|| serde_json::Error::missing_field("exit_code"))?;
    Ok(serde_json::from_str(json)?)
}

/// The text that is packed in `bytes`.
///
/// # Errors
/// It is no such text.
pub fn unpacked(bytes: &[u8]) -> io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BootReport, Verdict};

    #[test]
    fn a_report_of_another_version_is_read_as_far_as_it_can_be() {
        let less = r#"{"schema":1,"verdict":"ready","exit_code":0}"#;
        let less: BootReport = read(less).expect("of an older version");
        assert_eq!((less.verdict, less.ports.len()), (Verdict::Ready, 0));
        let more = r#"{"schema":1,"verdict":"ready","exit_code":0,"kernel":"6.1","mood":"good"}"#;
        assert_eq!(read::<BootReport>(more).expect("of a newer version").kernel, "6.1");
    }

    #[test]
    fn another_schema_is_said() {
        let e = read::<BootReport>(r#"{"schema":2,"verdict":"x"}"#).expect_err("schema 2");
        assert_eq!(e.to_string(), "the report has schema 2, but this ibprov reads schema 1");
        assert!(read::<BootReport>("{}").is_err() && read::<BootReport>("no JSON").is_err());
    }
}
