//! What to do about a finding, step by step.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::{Guid, MadPort, PKey};

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

/// One step: a command, words without a full stop, or words that say when or what for the
/// command is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToDo {
    /// What is to be done, or when the command is right.
    #[serde(rename = "do", default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// A command line of sh that can be pasted. Text shows it alone on a line that is never broken.
    #[serde(rename = "run", default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl ToDo {
    pub fn run(command: impl Into<String>) -> Self {
        Self { words: None, command: Some(command.into()) }
    }

    /// This command, of which `words` say when or what for it is.
    pub fn with(words: impl Into<String>, command: impl Into<String>) -> Self {
        Self { words: Some(words.into()), command: Some(command.into()) }
    }

    /// What shows why `netdev` is not in its broadcast group.
    pub fn multicast_joins(netdev: impl fmt::Display) -> Self {
        Self::with(
            "status -110 means that the subnet manager does not answer, -22 that it refuses",
            format!("dmesg | grep '{netdev}: multicast join failed'"),
        )
    }

    /// `command`, which has `port` in it; words where that is not known.
    pub fn at(port: &MadPort, command: String) -> Self {
        let step = Self::run(command);
        if port.is_known() { step } else { step.to_string().into() }
    }

    /// The same step, before whose words `words` stand.
    #[must_use]
    pub fn after(self, words: &str) -> Self {
        let words = match &self.words {
            Some(then) => format!("{words}: {then}"),
            None => words.to_owned(),
        };
        Self { words: Some(words), ..self }
    }

    /// The same step with each text as `change` makes it.
    #[must_use]
    pub fn map(&self, change: impl Fn(&str) -> String) -> Self {
        let changed = |text: &Option<String>| text.as_deref().map(&change);
        Self { words: changed(&self.words), command: changed(&self.command) }
    }
}

impl<T: Into<String>> From<T> for ToDo {
    fn from(words: T) -> Self {
        Self { words: Some(words.into()), command: None }
    }
}

/// In one line, where no command can stand alone.
impl fmt::Display for ToDo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.words, &self.command) {
            (Some(words), Some(command)) => write!(f, "{words}: `{command}`"),
            (None, Some(command)) => write!(f, "`{command}`"),
            (words, None) => f.write_str(words.as_deref().unwrap_or_default()),
        }
    }
}

/// A step, and what it is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Advice {
    pub purpose: Purpose,
    #[serde(flatten)]
    pub step: ToDo,
}

impl Advice {
    /// A step that shows more.
    pub fn look(step: impl Into<ToDo>) -> Self {
        Self { purpose: Purpose::Look, step: step.into() }
    }

    /// A step that repairs the present boot.
    pub fn now(step: impl Into<ToDo>) -> Self {
        Self { purpose: Purpose::Now, step: step.into() }
    }

    /// A step that repairs every later boot.
    pub fn permanent(step: impl Into<ToDo>) -> Self {
        Self { purpose: Purpose::Permanent, step: step.into() }
    }

    /// The first of `steps`, to stand behind a sentence.
    pub fn remedy(steps: &[Self]) -> String {
        steps.first().map(|advice| format!(". To fix: {}", advice.step)).unwrap_or_default()
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
