//! What to do about a finding, step by step.

use serde::{Deserialize, Serialize};

use crate::names::{Guid, PKey};

/// What a step is for. The order is the order in which steps are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// It shows more and changes nothing.
    Look,
    /// It repairs the present boot.
    Now,
    /// It repairs every boot from the next one on.
    Permanent,
}

impl Purpose {
    /// Every purpose, in order.
    pub const ALL: [Self; 3] = [Self::Look, Self::Now, Self::Permanent];

    /// The heading of its steps.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Look => "Look",
            Self::Now => "Fix now",
            Self::Permanent => "Fix permanently",
        }
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Advice {
    /// What it is for.
    pub purpose: Purpose,
    /// A command, or one sentence without a full stop.
    pub text: String,
}

impl Advice {
    /// A step that shows more.
    pub fn look(text: impl Into<String>) -> Self {
        Self { purpose: Purpose::Look, text: text.into() }
    }

    /// A step that repairs the present boot.
    pub fn now(text: impl Into<String>) -> Self {
        Self { purpose: Purpose::Now, text: text.into() }
    }

    /// A step that repairs every later boot.
    pub fn permanent(text: impl Into<String>) -> Self {
        Self { purpose: Purpose::Permanent, text: text.into() }
    }

    /// The first of `steps`, to stand behind a sentence.
    pub fn remedy(steps: &[Self]) -> String {
        steps.first().map(|step| format!(". To fix: {}", step.text)).unwrap_or_default()
    }

    /// `steps` as lines of a text, each behind `head`.
    pub fn lines<'a>(
        head: &str,
        steps: impl IntoIterator<Item = &'a Self>,
    ) -> impl Iterator<Item = String> {
        steps.into_iter().map(move |step| format!("{head}{}", step.text))
    }

    /// How the port with this GUID becomes a full member of the partition of `pkey`.
    pub fn full_membership(pkey: PKey, port: Option<Guid>) -> Self {
        const DEFAULT: u16 = 0x7fff;
        let port =
            port.map_or_else(|| "PORT_GUID".to_owned(), |guid| format!("0x{:016x}", guid.value()));
        let line = match pkey.partition() {
            // opensm has this rule where no other names the partition.
            DEFAULT => format!("Default=0x7fff, ipoib : ALL=limited, SELF=full, {port}=full ;"),
            number => format!("pkey{number:04x}=0x{number:04x}, ipoib : {port}=full ;"),
        };
        Self::permanent(format!(
            "ask the administrator of the subnet manager for full membership; in opensm's partitions.conf: {line}"
        ))
    }
}
