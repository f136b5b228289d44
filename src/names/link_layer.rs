use serde::{Deserialize, Serialize};

/// What a port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkLayer {
    /// InfiniBand or Omni-Path: has IPoIB.
    InfiniBand,
    /// Ethernet: RoCE or iWARP.
    Ethernet,
    /// The kernel says `Unknown` or nothing readable.
    Unknown,
}
