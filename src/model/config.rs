//! What `ibprov config` and `ibprov import` say.

use serde::Serialize;

/// What `ibprov config check` says.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Checked {
    /// The files that were read, in order.
    pub files: Vec<String>,
    /// The files that were not, as another hides them or their names do not end in .toml.
    pub not_read: Vec<NotRead>,
    /// The expected ports that have no link now: whether that is meant the configuration can
    /// say.
    pub dark_ports: Vec<String>,
}

/// A file that was not read.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotRead {
    pub file: String,
    pub reason: String,
}

/// What `ibprov config show` says.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shown {
    /// The files that were read, in order.
    pub files: Vec<String>,
    pub settings: Vec<ShownSetting>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShownSetting {
    /// The key with dots; items of a list are counted.
    pub key: String,
    pub value: serde_json::Value,
    /// The file that gives it; `null` for a default.
    pub file: Option<String>,
    /// The line of it.
    pub line: Option<usize>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Import {
    /// The file that was converted.
    pub file: String,
    /// ibprov's configuration, a file for /etc/ibprov/ibprov.d.
    pub toml: String,
}
