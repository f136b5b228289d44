use std::fmt;
use std::str::FromStr;

use super::{Guid, PciAddress, RdmaName};

/// How an adapter or a port of it is named in the configuration, the PCI address with or
/// without its domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortSelector {
    /// By the PCI address of its function.
    Pci(PciAddress),
    PortGuid(Guid),
    /// By the name of its RDMA device.
    Rdma(RdmaName),
}

/// Why a text names no adapter and no port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a PCI address (0000:4b:00.0), port GUID (0002:c903:000e:8acd) or RDMA device (mlx5_0)"
)]
pub struct PortSelectorError {
    text: String,
}

impl FromStr for PortSelector {
    type Err = PortSelectorError;

    fn from_str(text: &str) -> Result<Self, PortSelectorError> {
        let pci = PciAddress::typed(text).map(Self::Pci).ok();
        let guid = || text.parse().map(Self::PortGuid).ok();
        let rdma = || text.parse().map(Self::Rdma).ok();
        pci.or_else(guid)
            .or_else(rdma)
            .ok_or_else(|| PortSelectorError { text: text.chars().take(64).collect() })
    }
}

impl fmt::Display for PortSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pci(address) => address.fmt(f),
            Self::PortGuid(guid) => guid.fmt(f),
            Self::Rdma(name) => name.fmt(f),
        }
    }
}

/// Which ports are expected, whatever is said of single ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum PortChoice {
    /// Every InfiniBand port of the host, and those that the configuration describes.
    Found,
    /// Only those that the configuration describes.
    Listed,
}

/// Where a port is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum PortWait {
    /// In `ibprov boot`, and in `ibprov wait-online`.
    Boot,
    /// In `ibprov wait-online` only: what creates the port starts after the boot's own units.
    Online,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_name_a_port_is_told_apart() {
        for (text, want) in [
            ("0000:4b:00.0", "Pci(PciAddress(0000:4b:00.0))"),
            ("4b:00.0", "Pci(PciAddress(0000:4b:00.0))"),
            ("0x0002c903000e8acd", "PortGuid(Guid(0002:c903:000e:8acd))"),
            ("0002:c903:000e:8acd", "PortGuid(Guid(0002:c903:000e:8acd))"),
            ("mlx5_0", "Rdma(RdmaName(\"mlx5_0\"))"),
        ] {
            let port = text.parse::<PortSelector>().expect(text);
            assert_eq!(format!("{port:?}"), want);
            assert_eq!(port.to_string().parse(), Ok(port));
        }
        for text in ["", "4b:00", "ib 0", "../x"] {
            assert!(text.parse::<PortSelector>().is_err(), "{text}");
        }
    }
}
