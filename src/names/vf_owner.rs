//! Who decides on a VF once it has its first GUIDs.

use std::str::FromStr;

use serde::Serialize;

use super::{WordError, Words};

/// To whom the GUIDs and the link policy of a VF belong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VfOwner {
    /// To the plan: what differs from it is put right.
    #[default]
    Plan,
    /// To a CNI plugin (ib-sriov-cni), from the first GUIDs on: it gives the VF those of a
    /// pod, and moves it to the network namespace of that.
    Cni,
}

impl Words for VfOwner {
    const ALL: &'static [Self] = &[Self::Plan, Self::Cni];

    fn typed(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Cni => "cni",
        }
    }
}

impl FromStr for VfOwner {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        Self::from_typed(text).ok_or_else(WordError::of::<Self>)
    }
}
