//! What would change at a VF.

use serde::Serialize;

/// What would become of one VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VfDiff {
    /// Which VF.
    pub index: u16,
    /// What would be done.
    pub action: Action,
    /// What would be changed, or is deferred.
    pub changes: Vec<Change>,
    /// Why it is left as it is, and who uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferred: Option<String>,
}

/// What would be done with a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Nothing: it is as wanted.
    Keep,
    /// It would be created.
    Create,
    /// Something about it would be changed.
    Change,
    /// It would be destroyed.
    Remove,
    /// Something is not as wanted and stays so: it is in use.
    Defer,
    /// Nothing can be done at its PF.
    Block,
}

/// One thing that would be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// `node GUID`, `port GUID`, `policy`, `driver`, `VF`.
    pub what: &'static str,
    /// As it is.
    pub from: String,
    /// As it shall be.
    pub to: String,
    /// Why, where it is not clear from the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Change {
    pub(crate) fn new(what: &'static str, from: impl Into<String>, to: impl Into<String>) -> Self {
        Self { what, from: from.into(), to: to.into(), why: None }
    }

    pub(crate) fn because(self, why: String) -> Self {
        Self { why: Some(why), ..self }
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} -> {}", self.what, self.from, self.to)?;
        match &self.why {
            Some(why) => write!(f, " ({why})"),
            None => Ok(()),
        }
    }
}
