//! The reports that the last runs of verbs have left.

use serde::de::DeserializeOwned;

use crate::host::{Root, state};
use crate::model;

/// The report `name`, below [`state::RUN_DIR`]; none if there is none, or if it cannot be read: what
/// is wrong with it is a finding of `status` and `check`.
pub fn last_report<T: DeserializeOwned>(root: &Root, name: &str) -> Option<T> {
    let path = format!("{}/{name}", state::RUN_DIR);
    let text = root.text(&path, 16 << 20).ok()?;
    model::read(&text).inspect_err(|e| tracing::debug!(cause = %e, "{path}: {e}")).ok()
}
