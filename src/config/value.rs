use std::any::Any;
use std::fmt::Display;
use std::sync::Arc;

use serde_json::Value as Json;

/// One value of a configuration file, already of its type.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    typed: Arc<dyn Any + Send + Sync>,
    /// As it stands in JSON and, since no name needs escaping, in TOML.
    pub(crate) json: Json,
}

impl Value {
    pub(crate) fn new(typed: impl Any + Send + Sync, json: impl Into<Json>) -> Self {
        Self { typed: Arc::new(typed), json: json.into() }
    }

    /// A value that is written as a string, as it is displayed.
    pub(crate) fn text(typed: impl Any + Send + Sync + Display) -> Self {
        let json = typed.to_string();
        Self::new(typed, json)
    }

    /// The value, if it is of this type.
    pub(crate) fn get<T: Any + Clone>(&self) -> Option<T> {
        self.typed.downcast_ref().cloned()
    }
}
