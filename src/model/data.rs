//! The data beside the program.

use serde::de::DeserializeOwned;

use crate::model::unpacked;

/// What a file of data says; `packed` is what build.rs has made of it.
pub fn data<T: DeserializeOwned + Default>(packed: &[u8]) -> T {
    let text = unpacked(packed).map_err(|e| e.to_string());
    text.and_then(|text| toml::from_str(&text).map_err(|e| e.to_string())).unwrap_or_else(|e| {
        tracing::error!("the data of the rules cannot be read: {e}");
        T::default()
    })
}
