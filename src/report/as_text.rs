//! Values that are texts in JSON: for `#[serde(serialize_with = ...)]`.

use std::fmt::Display;

use serde::Serializer;

/// The text of it; `null` for none.
pub fn option<T: Display, S: Serializer>(value: &Option<T>, s: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => s.collect_str(value),
        None => s.serialize_none(),
    }
}

/// Writes a list of values as the list of their texts.
pub fn list<T: Display, S: Serializer>(values: &[T], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(values.iter().map(ToString::to_string))
}
