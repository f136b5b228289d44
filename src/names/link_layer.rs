use serde::{Deserialize, Serialize};

use super::Words;

/// What a port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum LinkLayer {
    /// InfiniBand or Omni-Path: has IPoIB.
    #[serde(rename = "infiniband")]
    InfiniBand,
    /// Ethernet: RoCE or iWARP.
    Ethernet,
    /// The kernel says `Unknown` or nothing readable.
    Unknown,
}

impl Words for LinkLayer {
    // What a port can be set to.
    const ALL: &'static [Self] = &[Self::InfiniBand, Self::Ethernet];
}
