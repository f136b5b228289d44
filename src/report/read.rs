//! Reading back what another run, perhaps of another version, has written, and what build.rs has
//! packed.

use std::io::{self, Read as _};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::SCHEMA;

/// The oldest version of the format that is read: the boot before an upgrade, archives and
/// fleets of two versions have it.
const OLDEST: u32 = 2;

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Its format has another version than this ibprov knows.
    #[error(
        "the report has schema {found}, but this ibprov reads the schemas {OLDEST} to {SCHEMA}"
    )]
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
    match (u64::from(OLDEST)..=u64::from(SCHEMA)).contains(&found) {
        true => Ok(()),
        false => Err(ReadError::Schema { found }),
    }
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
    }
    let Head { schema } = serde_json::from_str(json)?;
    check_schema(schema)?;
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
    use crate::report::common::Code;
    use crate::report::{BootReport, Verdict};

    #[test]
    fn a_report_of_another_version_is_read_as_far_as_it_can_be() {
        let less = r#"{"schema":2,"verdict":"ready","exit_code":0}"#;
        let less: BootReport = read(less).expect("of an older version");
        assert_eq!((less.verdict, less.ports.len()), (Verdict::Ready, 0));
        let more = r#"{"schema":2,"verdict":"ready","exit_code":0,"kernel":"6.1","mood":"good"}"#;
        assert_eq!(read::<BootReport>(more).expect("of a newer version").kernel, "6.1");
    }

    #[test]
    fn each_code_of_the_older_schema_is_read() {
        let schema = include_str!("../../docs/schema/2/boot.json");
        let schema: serde_json::Value = serde_json::from_str(schema).expect("JSON");
        let codes = schema["$defs"]["Code"]["enum"].as_array().expect("codes").iter();
        let lost: Vec<_> = codes.filter(|code| Code::deserialize(*code).is_err()).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }

    #[test]
    fn another_schema_is_said() {
        let e = read::<BootReport>(r#"{"schema":1,"verdict":"x"}"#).expect_err("schema 1");
        assert_eq!(
            e.to_string(),
            "the report has schema 1, but this ibprov reads the schemas 2 to 3"
        );
        assert!(read::<BootReport>("{}").is_err() && read::<BootReport>("no JSON").is_err());
    }
}
