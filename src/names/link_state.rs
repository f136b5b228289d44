//! How the link of a port is, in the kernel's words.

use serde::{Deserialize, Serialize};

use super::Words as _;

/// The logical state of a port (InfiniBand Architecture, PortInfo.PortState), as
/// `state_show()` of drivers/infiniband/core/sysfs.c spells it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
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
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
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
    #[strum(serialize = "Phy Test")]
    PhyTest,
    /// Something else.
    #[strum(serialize = "<unknown>")]
    Unknown,
}

impl LinkState {
    /// The kernel's word for it.
    pub fn word(self) -> &'static str {
        self.typed()
    }

    /// The state of that word.
    pub fn from_word(word: &str) -> Self {
        Self::from_typed(word).unwrap_or(Self::Unknown)
    }
}

impl PhysicalState {
    /// The kernel's word for it.
    pub fn word(self) -> &'static str {
        self.typed()
    }

    /// The state of that word.
    pub fn from_word(word: &str) -> Self {
        Self::from_typed(word).unwrap_or(Self::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray as _;

    #[test]
    fn the_kernels_words_are_read_back() {
        for state in LinkState::VARIANTS.iter().copied() {
            assert_eq!(LinkState::from_word(state.word()), state);
        }
        for state in PhysicalState::VARIANTS.iter().copied() {
            assert_eq!(PhysicalState::from_word(state.word()), state);
        }
        assert_eq!(LinkState::from_word("active"), LinkState::Unknown);
    }
}
