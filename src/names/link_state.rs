//! How the link of a port is, in the kernel's words.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The logical state of a port (InfiniBand Architecture, PortInfo.PortState), as
/// `state_show()` of drivers/infiniband/core/sysfs.c spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LinkState {
    /// No state change.
    Nop,
    /// The physical link is not up, or the port was told to be down.
    Down,
    /// The link is up, and no subnet manager has configured it.
    Init,
    /// A subnet manager has begun to configure it.
    Armed,
    /// A subnet manager has configured it.
    Active,
    /// Active, with the link lost for a moment.
    ActiveDefer,
    /// Something else.
    Unknown,
}

/// The physical state of a port (PortInfo.PortPhysicalState), as `phys_state_to_str()` of
/// the same file spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PhysicalState {
    /// It neither sends nor listens.
    Sleep,
    /// It sees no signal.
    Polling,
    /// It is switched off.
    Disabled,
    /// It is being trained.
    PortConfigurationTraining,
    /// It is up.
    LinkUp,
    /// It recovers from errors.
    LinkErrorRecovery,
    /// It is being tested.
    PhyTest,
    /// Something else.
    Unknown,
}

impl LinkState {
    const ALL: [Self; 7] = [
        Self::Nop,
        Self::Down,
        Self::Init,
        Self::Armed,
        Self::Active,
        Self::ActiveDefer,
        Self::Unknown,
    ];

    /// The kernel's word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Nop => "NOP",
            Self::Down => "DOWN",
            Self::Init => "INIT",
            Self::Armed => "ARMED",
            Self::Active => "ACTIVE",
            Self::ActiveDefer => "ACTIVE_DEFER",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// The state of that word.
    pub fn from_word(word: &str) -> Self {
        Self::ALL.into_iter().find(|state| state.word() == word).unwrap_or(Self::Unknown)
    }
}

impl PhysicalState {
    const ALL: [Self; 8] = [
        Self::Sleep,
        Self::Polling,
        Self::Disabled,
        Self::PortConfigurationTraining,
        Self::LinkUp,
        Self::LinkErrorRecovery,
        Self::PhyTest,
        Self::Unknown,
    ];

    /// The kernel's word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sleep => "Sleep",
            Self::Polling => "Polling",
            Self::Disabled => "Disabled",
            Self::PortConfigurationTraining => "PortConfigurationTraining",
            Self::LinkUp => "LinkUp",
            Self::LinkErrorRecovery => "LinkErrorRecovery",
            Self::PhyTest => "Phy Test",
            Self::Unknown => "<unknown>",
        }
    }

    /// The state of that word.
    pub fn from_word(word: &str) -> Self {
        Self::ALL.into_iter().find(|state| state.word() == word).unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for LinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl fmt::Display for PhysicalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read_back() {
        for state in LinkState::ALL {
            assert_eq!(LinkState::from_word(state.word()), state);
        }
        for state in PhysicalState::ALL {
            assert_eq!(PhysicalState::from_word(state.word()), state);
        }
        assert_eq!(LinkState::from_word("active"), LinkState::Unknown);
    }
}
