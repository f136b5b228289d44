//! What `[guests]` and `[[guest]]` of the configuration can say.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::{VfName, Words};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// Start it when they are.
    Retry,
    /// Report it and leave it.
    Report,
}

/// What counts as up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    /// The domain is running.
    Running,
    /// And its guest agent answers.
    Agent,
}

impl Words for OnFailure {
    const ALL: &'static [Self] = &[Self::Retry, Self::Report];

    fn typed(self) -> &'static str {
        self.word()
    }
}

impl OnFailure {
    /// The word for it, as users type it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Report => "report",
        }
    }
}

impl FromStr for OnFailure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_typed(text).ok_or_else(|| not_one_of::<Self>(text))
    }
}

impl Words for Ready {
    const ALL: &'static [Self] = &[Self::Running, Self::Agent];

    fn typed(self) -> &'static str {
        self.word()
    }
}

impl Ready {
    /// The word for it, as users type it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Agent => "agent",
        }
    }
}

impl FromStr for Ready {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_typed(text).ok_or_else(|| not_one_of::<Self>(text))
    }
}

/// `text` is no word of `T`, for people.
fn not_one_of<T: Words>(text: &str) -> String {
    let shown: String = text.chars().take(64).collect();
    format!("{shown:?} is not one of {}", T::all_typed().join(", "))
}
