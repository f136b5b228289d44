use serde::Serialize;

use super::Words;

/// What a GID is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum GidKind {
    /// InfiniBand.
    Ib,
    /// RoCE, in Ethernet frames.
    RoceV1,
    /// RoCE, in UDP.
    RoceV2,
    /// Something that is not known here.
    Unknown,
}

impl Words for GidKind {
    // What can be asked for.
    const ALL: &'static [Self] = &[Self::Ib, Self::RoceV1, Self::RoceV2];
}

impl GidKind {
    /// What it is called.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ib => "IB",
            Self::RoceV1 => "RoCE v1",
            Self::RoceV2 => "RoCE v2",
            Self::Unknown => "unknown",
        }
    }
}
