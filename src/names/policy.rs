//! What is asked of a VF beside its GUIDs: its link state and its driver.

use serde::{Deserialize, Serialize};

use super::Words as _;

/// The link state of a VF: what its port's state follows.
///
/// `IFLA_VF_LINK_STATE` (`include/uapi/linux/if_link.h`) calls them auto,
/// enable and disable; OFED's `sriov/N/policy` Follow, Up and Down.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Policy {
    /// The physical port's state.
    Follow,
    /// Up, whatever the cable says; needs a virtualization-aware SM.
    Up,
    /// The VF's port stays down, whatever the cable says.
    Down,
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

/// Who drives a VF on this host.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum VfDriver {
    /// The host's own driver for it, as its modalias says (mlx5_core).
    Host,
    /// vfio-pci, for a VM; the host's own driver never probes it.
    VfioPci,
    /// No driver is bound to it.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_parse_back() {
        for &policy in Policy::ALL {
            assert_eq!(Policy::from_typed(&policy.to_string()), Some(policy));
        }
        for &driver in VfDriver::ALL {
            assert_eq!(VfDriver::from_typed(&driver.to_string()), Some(driver));
        }
        assert_eq!((Policy::from_typed("Follow"), VfDriver::from_typed("")), (None, None));
    }
}
