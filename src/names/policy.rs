//! What is asked of a VF beside its GUIDs: its link policy and its driver.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{WordError, Words};

/// The link policy of a VF: what its port's state follows.
///
/// `IFLA_VF_LINK_STATE` (`include/uapi/linux/if_link.h`) calls them auto,
/// enable and disable; OFED's `sriov/N/policy` Follow, Up and Down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The physical port's state.
    Follow,
    /// Up, whatever the cable says; needs a virtualization-aware SM.
    Up,
    /// The VF's port stays down, whatever the cable says.
    Down,
}

impl Words for Policy {
    const ALL: &'static [Self] = &[Self::Follow, Self::Up, Self::Down];

    fn typed(self) -> &'static str {
        match self {
            Self::Follow => "follow",
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

impl Policy {
    /// The word that OFED's `sriov/N/policy` takes and gives; case counts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Follow => "Follow",
            Self::Up => "Up",
            Self::Down => "Down",
        }
    }

    /// The policy of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|policy| policy.word() == word)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.typed())
    }
}

impl FromStr for Policy {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        Self::from_typed(text).ok_or_else(WordError::of::<Self>)
    }
}

/// Who drives a VF on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VfDriver {
    /// The host's own driver for it, as its modalias says (mlx5_core).
    Host,
    /// vfio-pci, for a VM; the host's own driver never probes it.
    VfioPci,
    /// No driver is bound to it.
    None,
}

impl Words for VfDriver {
    const ALL: &'static [Self] = &[Self::Host, Self::VfioPci, Self::None];

    fn typed(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::VfioPci => "vfio-pci",
            Self::None => "none",
        }
    }
}

impl fmt::Display for VfDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.typed())
    }
}

impl FromStr for VfDriver {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        Self::from_typed(text).ok_or_else(WordError::of::<Self>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_parse_back() {
        for &policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for &driver in VfDriver::ALL {
            assert_eq!(driver.to_string().parse(), Ok(driver));
        }
        assert!("Follow".parse::<Policy>().is_err() && "".parse::<VfDriver>().is_err());
    }
}
