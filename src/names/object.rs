//! What a finding is about.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::VfName;
use super::{Guid, IfName, ModuleName, PciAddress, PortNumber, PortSelector, RdmaName, UnitName};

/// What a finding is about, as far as its name says it. The text of an object read back is the
/// same object, whether it comes from a report or from a log, which may name less than a host
/// does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Object {
    /// `0000:4b:00.0`
    Function(PciAddress),
    /// `VF 3 of 0000:4b:00.0`, in logs `PF 0000:4b:00.0: VF 3`
    Vf(VfName),
    /// `mlx5_0 (0000:4b:00.0)`
    Device {
        name: RdmaName,
        function: PciAddress,
    },
    /// `mlx5_0/1 (0000:4b:00.0)`, in logs `mlx5_0/1`
    Port {
        of: PortSelector,
        port: PortNumber,
        function: Option<PciAddress>,
    },
    Unit(UnitName),
    /// What is known by a bare name: an interface, a module, a guest, a file, an RDMA device.
    Named(String),
}

impl Object {
    pub const fn port_of(device: RdmaName, port: PortNumber, function: PciAddress) -> Self {
        Self::Port { of: PortSelector::Rdma(device), port, function: Some(function) }
    }

    /// The objects of a text that names several.
    pub fn all(text: &str) -> Vec<Self> {
        text.split(", ").map(Self::from).collect()
    }

    /// The PCI function that it is or belongs to.
    pub const fn function(&self) -> Option<PciAddress> {
        match self {
            Self::Function(pci)
            | Self::Vf(VfName { pf: pci, .. })
            | Self::Device { function: pci, .. }
            | Self::Port { function: Some(pci), .. }
            | Self::Port { of: PortSelector::Pci(pci), .. } => Some(*pci),
            Self::Port { .. } | Self::Unit(_) | Self::Named(_) => None,
        }
    }

    pub const fn vf(&self) -> Option<VfName> {
        match self {
            Self::Vf(vf) => Some(*vf),
            _ => None,
        }
    }

    /// The port that it is, by what every name of it has.
    pub const fn port(&self) -> Option<(&PortSelector, PortNumber)> {
        match self {
            Self::Port { of, port, .. } => Some((of, *port)),
            _ => None,
        }
    }

    /// True if both are one object, of which one name may say less.
    pub fn is(&self, other: &Self) -> bool {
        self == other || self.port().is_some() && self.port() == other.port()
    }

    /// True if it is `other`, or belongs to the PCI function that `other` is.
    pub fn is_of(&self, other: &Self) -> bool {
        self.is(other) || matches!(other, Self::Function(pci) if self.function() == Some(*pci))
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some((name, function)) = text.strip_suffix(')').and_then(|t| t.split_once(" (")) {
            let function = function.parse().ok()?;
            return match Self::parse(name) {
                Some(Self::Port { of, port, .. }) => {
                    Some(Self::Port { of, port, function: Some(function) })
                }
                _ => Some(Self::Device { name: name.parse().ok()?, function }),
            };
        }
        let of_host = || text.strip_prefix("VF ")?.split_once(" of ");
        let of_log = || text.strip_prefix("PF ")?.split_once(": VF ");
        if let Some((index, pf)) = of_host().or_else(|| of_log().map(|(pf, index)| (index, pf))) {
            return Some(Self::Vf(VfName { pf: pf.parse().ok()?, index: index.parse().ok()? }));
        }
        // Tools and the kernel say `mlx5_0 port 1`.
        if let Some((of, port)) = text.rsplit_once('/').or_else(|| text.split_once(" port ")) {
            let port = PortNumber::new(port.parse().ok()?).ok()?;
            return Some(Self::Port { of: of.parse().ok()?, port, function: None });
        }
        let function = text.strip_prefix("PF ").unwrap_or(text).parse();
        function.map(Self::Function).ok().or_else(|| text.parse().map(Self::Unit).ok())
    }
}

impl From<&str> for Object {
    fn from(text: &str) -> Self {
        Self::parse(text).unwrap_or_else(|| Self::Named(text.to_owned()))
    }
}

impl From<Object> for String {
    fn from(object: Object) -> Self {
        object.to_string()
    }
}

impl From<&Self> for Object {
    fn from(object: &Self) -> Self {
        object.clone()
    }
}

macro_rules! named {
    ($($type:ty),+) => {$(
        impl From<$type> for Object {
            fn from(name: $type) -> Self {
                Self::from(&*name.to_string())
            }
        }
    )+};
}

named!(String, &String, &&str, PciAddress, &PciAddress, Guid, &IfName, &RdmaName, &ModuleName);
named!(&UnitName);

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function(pci) => pci.fmt(f),
            Self::Vf(VfName { pf, index }) => write!(f, "VF {index} of {pf}"),
            Self::Device { name, function } => write!(f, "{name} ({function})"),
            Self::Port { of, port, function } => {
                write!(f, "{of}/{port}")?;
                function.map_or(Ok(()), |function| write!(f, " ({function})"))
            }
            Self::Unit(unit) => unit.fmt(f),
            Self::Named(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_known_by_its_text() {
        let pci = Some("0000:4b:00.0");
        for (text, function) in [
            ("0000:4b:00.0", pci),
            ("VF 3 of 0000:4b:00.0", pci),
            ("mlx5_0 (0000:4b:00.0)", pci),
            ("mlx5_0/1 (0000:4b:00.0)", pci),
            ("0000:4b:00.0/2", pci),
            ("mlx5_0/1", None),
            ("openibd.service", None),
        ] {
            let object = Object::from(text);
            assert!(!matches!(object, Object::Named(_)), "{text}");
            assert_eq!(object.to_string(), text);
            assert_eq!(object.function().map(|pci| pci.to_string()).as_deref(), function, "{text}");
        }
        for (logged, text) in [
            ("PF 0000:4b:00.0: VF 3", "VF 3 of 0000:4b:00.0"),
            ("PF 0000:4b:00.0", "0000:4b:00.0"),
            ("mlx5_0 port 1", "mlx5_0/1"),
        ] {
            assert_eq!(Object::from(logged), Object::from(text));
        }
        for text in ["ib0", "mlx5_0", "mlx5_0/0", "rxe0 (eth1)", "a port of mlx5_0", "/run", ""] {
            assert_eq!(Object::from(text), Object::Named(text.to_owned()));
        }
    }

    #[test]
    fn a_log_names_a_port_with_less_than_a_host() {
        let [full, bare, other, function] =
            ["mlx5_0/1 (0000:4b:00.0)", "mlx5_0/1", "mlx5_0/2", "0000:4b:00.0"].map(Object::from);
        assert!(full.is(&bare) && !full.is(&other) && !full.is(&function));
        assert!(full.is_of(&bare) && full.is_of(&function) && !function.is_of(&full));
        assert!(!bare.is_of(&function));
    }
}
