//! Ports: their numbers, and how the configuration, the command line and tools name one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{BadText, Guid, IfName, PciAddress, RdmaName, is_hostile};

/// The number of a physical port of an RDMA device, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(into = "u8", try_from = "i64")]
pub struct PortNumber(u8);

impl PortNumber {
    /// Port 1, the only one of most devices.
    pub const FIRST: Self = Self(1);
    pub const SECOND: Self = Self(2);

    /// The port with this number.
    ///
    /// # Errors
    /// 0 is a switch's management port and 255 is reserved (InfiniBand
    /// Architecture, PortInfo): neither is a port of an HCA.
    pub fn new(number: i64) -> Result<Self, String> {
        u8::try_from(number)
            .ok()
            .filter(|n| (1..=254).contains(n))
            .map(Self)
            .ok_or_else(|| format!("{number} is not a port number: expected 1 to 254"))
    }

    /// The number, from 1.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<i64> for PortNumber {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        Self::new(number)
    }
}

impl From<PortNumber> for u8 {
    fn from(port: PortNumber) -> Self {
        port.get()
    }
}

impl fmt::Display for PortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The port through which a tool of infiniband-diags sends its datagrams, as its options
/// `-C` and `-P`. Without them it takes the first port that is up, which may be another
/// adapter's (rdma-core, ibportstate(8)). What is not known is a placeholder, and the command is
/// none that can be run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MadPort {
    pub device: Option<RdmaName>,
    pub port: Option<PortNumber>,
}

impl MadPort {
    pub const fn is_known(&self) -> bool {
        self.device.is_some() && self.port.is_some()
    }

    /// The command that does this to the port itself: `enable`, `query`.
    pub fn ibportstate(&self, operation: &str) -> String {
        format!("ibportstate {self} -D 0 {} {operation}", self.number())
    }

    fn number(&self) -> String {
        self.port.map_or_else(|| "PORT".to_owned(), |port| port.to_string())
    }
}

displayed!(MadPort, port => "-C {} -P {}",
    port.device.as_ref().map_or("DEVICE", RdmaName::as_str), port.number());

/// How an adapter or a port of it is named in the configuration, the PCI address with or
/// without its domain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display)]
pub enum PortSelector {
    /// By the PCI address of its function.
    #[strum(to_string = "{0}")]
    Pci(PciAddress),
    #[strum(to_string = "{0}")]
    PortGuid(Guid),
    /// By the name of its RDMA device.
    #[strum(to_string = "{0}")]
    Rdma(RdmaName),
}

const NO_PORT: &str =
    "is not a PCI address (0000:4b:00.0), port GUID (0002:c903:000e:8acd) or RDMA device (mlx5_0)";

parsed!(PortSelector, NO_PORT, |text| {
    let pci = PciAddress::typed(text).map(Self::Pci).ok();
    let guid = || text.parse().map(Self::PortGuid).ok();
    pci.or_else(guid).or_else(|| text.parse().map(Self::Rdma).ok())
});

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

const NO_TARGET: &str = "does not name a port: expected a netdev (ib0), an RDMA device (mlx5_0, or mlx5_0/1 for its port 1), a PCI address (0000:4b:00.0) or a port GUID";

parsed!(Target, NO_TARGET, |text| {
    if let Ok(guid) = text.parse() {
        return Some(Self::Guid(guid));
    }
    let (name, port) = match text.split_once('/') {
        Some((name, port)) => (name, Some(PortNumber::new(port.parse().ok()?).ok()?)),
        None => (text, None),
    };
    match (PciAddress::typed(name), name.parse()) {
        (Ok(pci), _) => Some(Self::Pci(pci, port)),
        (_, Ok(name)) if port.is_none() => Some(Self::Name(name)),
        _ => name.parse().map(|name| Self::Rdma(name, port)).ok(),
    }
});

/// What `ibprov status` takes: a name, or a shell pattern for those that the host has.
#[derive(Debug, Clone, PartialEq, Eq, strum::Display)]
pub enum Targets {
    #[strum(to_string = "{0}")]
    One(Target),
    #[strum(to_string = "{0}")]
    Like(glob::Pattern),
}

impl FromStr for Targets {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        if !text.contains(['*', '?', '[']) || text.len() > 64 || text.contains(is_hostile) {
            return text.parse().map(Self::One);
        }
        let pattern = glob::Pattern::new(text);
        pattern.map(Self::Like).map_err(|_| BadText::new(text, "is not a pattern of a shell"))
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
    fn ports_count_from_one() {
        assert!(PortNumber::new(1).is_ok());
        for n in [0, -1, 255, 300] {
            assert!(PortNumber::new(n).is_err(), "{n}");
        }
    }

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
