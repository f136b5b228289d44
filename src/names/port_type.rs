use serde::{Deserialize, Serialize};

use super::{LinkLayer, Words as _};

/// The type of a port of a ConnectX-3, as `mlx4_portN` of its PCI function has it
/// (`set_port_type()`, drivers/net/ethernet/mellanox/mlx4/main.c).
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum PortType {
    /// InfiniBand.
    Ib,
    /// Ethernet.
    Eth,
}

impl PortType {
    /// As sysfs prints it: `eth`, or `auto (eth)` if the driver has found it out by itself;
    /// `None` for `auto`, which is not decided yet.
    pub fn from_sysfs(text: &str) -> Option<Self> {
        let word = text.strip_prefix("auto (").and_then(|rest| rest.strip_suffix(')'));
        Self::from_typed(word.unwrap_or(text))
    }

    /// The link layer of a port of this type.
    pub const fn link_layer(self) -> LinkLayer {
        match self {
            Self::Ib => LinkLayer::InfiniBand,
            Self::Eth => LinkLayer::Ethernet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sysfs_prints_is_read() {
        for (text, want) in [
            ("ib", Some(PortType::Ib)),
            ("eth", Some(PortType::Eth)),
            ("auto (eth)", Some(PortType::Eth)),
            ("auto", None),
            ("", None),
        ] {
            assert_eq!(PortType::from_sysfs(text), want, "{text}");
        }
    }
}
