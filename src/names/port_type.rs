use std::fmt;

use serde::{Deserialize, Serialize};

use super::{LinkLayer, Words};

/// The type of a port of a ConnectX-3, as `mlx4_portN` of its PCI function has it
/// (`set_port_type()`, drivers/net/ethernet/mellanox/mlx4/main.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PortType {
    /// InfiniBand.
    Ib,
    /// Ethernet.
    Eth,
}

impl Words for PortType {
    const ALL: &'static [Self] = &[Self::Ib, Self::Eth];

    fn typed(self) -> &'static str {
        match self {
            Self::Ib => "ib",
            Self::Eth => "eth",
        }
    }
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

impl fmt::Display for PortType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.typed())
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
