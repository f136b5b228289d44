//! What `ibprov collect` says.

use serde::Serialize;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Collected {
    pub file: String,
    /// How many files are in it.
    pub files: usize,
    /// How long it is.
    pub bytes: u64,
    /// How many boots it has the journal of.
    pub boots: usize,
    /// Names and addresses are replaced.
    pub anonymized: bool,
}
