//! Values that are texts in JSON: for `#[serde(serialize_with = ...)]`, and one
//! for `deserialize_with`.

use std::fmt::Display;

use serde::{Deserialize, Deserializer, Serializer};

/// The text of it; `null` for none.
pub(super) fn option<T: Display, S: Serializer>(
    value: &Option<T>,
    s: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => s.collect_str(value),
        None => s.serialize_none(),
    }
}

/// The text of it; empty for none.
pub(super) fn or_empty<T: Display, S: Serializer>(
    value: &Option<T>,
    s: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => s.collect_str(value),
        None => s.serialize_str(""),
    }
}

/// Writes a list of values as the list of their texts.
pub(super) fn list<T: Display, S: Serializer>(values: &[T], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(values.iter().map(ToString::to_string))
}

/// What [`or_empty`] wrote of a text: an empty one is none.
pub(super) fn if_any<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    Ok(Some(String::deserialize(d)?).filter(|text| !text.is_empty()))
}
