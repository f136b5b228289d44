use serde::{Deserialize, Serialize};

/// What a port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LinkLayer {
    /// InfiniBand or Omni-Path: has IPoIB.
    #[serde(rename = "infiniband")]
    InfiniBand,
    /// Ethernet: RoCE or iWARP.
    Ethernet,
    /// The kernel says `Unknown` or nothing readable.
    Unknown,
}
