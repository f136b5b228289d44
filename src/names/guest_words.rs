//! What `[guests]` and `[[guest]]` of the configuration can say.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::VfName;

/// libvirt's connection URI, `qemu:///system`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection(String);

impl Connection {
    /// The URI as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Connection {
    fn default() -> Self {
        Self("qemu:///system".to_owned())
    }
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Connection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once(':').unwrap_or_default();
        let good = scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && !rest.is_empty()
            && text.len() <= 300
            && text.bytes().all(|b| b.is_ascii_graphic());
        if good {
            return Ok(Self(text.to_owned()));
        }
        let shown: String = text.chars().take(64).collect();
        Err(format!("{shown:?} is not a libvirt connection: expected a URI such as qemu:///system"))
    }
}

/// An entry of `vfs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestVf {
    /// `auto`.
    Auto,
    /// One VF.
    One(VfName),
}

impl FromStr for GuestVf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => text.parse().map(Self::One).map_err(|e| format!("{e}, or \"auto\"")),
        }
    }
}

impl fmt::Display for GuestVf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::One(vf) => vf.fmt(f),
        }
    }
}

/// What to do if a guest's VFs are not right.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum OnFailure {
    /// Start it when they are.
    Retry,
    /// Report it and leave it.
    Report,
}

/// What counts as up.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Ready {
    /// The domain is running.
    Running,
    /// And its guest agent answers.
    Agent,
}
