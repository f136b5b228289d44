use std::fmt;
use std::str::FromStr;

use super::{Guid, IfName, PciAddress, PortNumber, RdmaName};

/// A port as it is named on the command line of `ibprov wait-online`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The HCA at a PCI address, `0000:4b:00.0`, or one port of it with `/1`.
    Pci(PciAddress, Option<PortNumber>),
    /// A port by its port GUID.
    Guid(Guid),
    /// A netdev's or an RDMA device's name: which of the two, the host tells.
    Name(IfName),
    /// An RDMA device's name that no netdev can have, or one with `/1`.
    Rdma(RdmaName, Option<PortNumber>),
}

/// Why a text names no port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} does not name a port: expected a netdev (ib0), an RDMA device (mlx5_0, or mlx5_0/1 for its port 1), a PCI address (0000:4b:00.0) or a port GUID"
)]
pub struct TargetError {
    text: String,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let bad = || TargetError { text: text.chars().take(64).collect() };
        if let Ok(guid) = text.parse() {
            return Ok(Self::Guid(guid));
        }
        let (name, port) = match text.split_once('/') {
            Some((name, port)) => {
                let number = port.parse::<i64>().ok().and_then(|n| PortNumber::new(n).ok());
                (name, Some(number.ok_or_else(bad)?))
            }
            None => (text, None),
        };
        if let Ok(pci) = PciAddress::typed(name) {
            return Ok(Self::Pci(pci, port));
        }
        if port.is_none()
            && let Ok(name) = name.parse()
        {
            return Ok(Self::Name(name));
        }
        name.parse().map(|name| Self::Rdma(name, port)).map_err(|_| bad())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pci(pci, None) => pci.fmt(f),
            Self::Pci(pci, Some(port)) => write!(f, "{pci}/{port}"),
            Self::Guid(guid) => guid.fmt(f),
            Self::Name(name) => name.fmt(f),
            Self::Rdma(name, None) => name.fmt(f),
            Self::Rdma(name, Some(port)) => write!(f, "{name}/{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_name_a_port_is_told_apart() {
        for (text, want) in [
            ("ib0", "Name(IfName(\"ib0\"))"),
            ("mlx5_0", "Name(IfName(\"mlx5_0\"))"),
            ("mlx5_0/2", "Rdma(RdmaName(\"mlx5_0\"), Some(PortNumber(2)))"),
            ("rocep0s31f6longer", "Rdma(RdmaName(\"rocep0s31f6longer\"), None)"),
            ("0000:4b:00.0", "Pci(PciAddress(0000:4b:00.0), None)"),
            ("4b:00.0", "Pci(PciAddress(0000:4b:00.0), None)"),
            ("4b:00.0/1", "Pci(PciAddress(0000:4b:00.0), Some(PortNumber(1)))"),
            ("0000:4b:00.0/1", "Pci(PciAddress(0000:4b:00.0), Some(PortNumber(1)))"),
            ("0x0002c903000e8acd", "Guid(Guid(0002:c903:000e:8acd))"),
            ("ib0;reboot", "Name(IfName(\"ib0;reboot\"))"),
        ] {
            let target = text.parse::<Target>().expect(text);
            assert_eq!(format!("{target:?}"), want);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", "..", "mlx5_0/0", "mlx5_0/x", "ib 0", "../../etc/1", "/1", "a/b/1"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_and_what_is_printed_reads_back(text in ".{0,40}") {
            if let Ok(target) = text.parse::<Target>() {
                proptest::prop_assert_eq!(target.to_string().parse::<Target>(), Ok(target));
            }
        }
    }
}
