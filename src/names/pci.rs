//! PCI functions: their addresses, and which of them are VFs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::BadText;

/// The address of a PCI function, `0000:4b:00.0`: domain, bus, device, function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

const NOT_AN_ADDRESS: &str = "is not a PCI address: expected domain:bus:device.function in hex, as `lspci -D` prints it, e.g. 0000:4b:00.0";

impl PciAddress {
    /// The address as people write it: without a domain, as `lspci` prints it (`4b:00.0`),
    /// domain 0000 is meant. Text of the kernel is parsed by [`FromStr`], which wants all
    /// of it: in a log, `10:12.5` is a time.
    ///
    /// # Errors
    /// Other text.
    pub fn typed(text: &str) -> Result<Self, BadText> {
        match text.matches(':').count() {
            1 => format!("0000:{text}").parse().map_err(|_| BadText::new(text, NOT_AN_ADDRESS)),
            _ => text.parse(),
        }
    }

    /// True if both are functions of one adapter.
    pub const fn is_beside(self, other: Self) -> bool {
        self.domain == other.domain && self.bus == other.bus && self.device == other.device
    }

    /// The adapter, by the address of its first function: its bus, which is all its own but in a
    /// guest, where adapters are devices of bus 0.
    pub const fn adapter(self) -> Self {
        let device = if self.bus == 0 { self.device } else { 0 };
        Self { device, function: 0, ..self }
    }

    /// The number of the adapter's port that an mlx5 function has: each has one.
    pub const fn port_of_adapter(self) -> u8 {
        self.function + 1
    }
}

fn hex(digits: &str, width: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let well_formed =
        width.contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    well_formed.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

parsed!(PciAddress, NOT_AN_ADDRESS, |text| {
    let (domain, rest) = text.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    // Domains above ffff exist (Hyper-V, VMD): the kernel prints %04x.
    let domain = hex(domain, 4..=8)?;
    let bus = u8::try_from(hex(bus, 2..=2)?).ok()?;
    let device = u8::try_from(hex(device, 2..=2)?).ok()?;
    let function = u8::try_from(hex(function, 1..=1)?).ok()?;
    (device < 32 && function < 8).then_some(Self { domain, bus, device, function })
});

displayed!(PciAddress, Self { domain, bus, device, function } =>
    "{domain:04x}:{bus:02x}:{device:02x}.{function:x}");

impl fmt::Debug for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PciAddress({self})")
    }
}

/// Whether a PCI function, or a port of it, is a VF's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IsVf {
    /// It is a PF's, or of an adapter without VFs.
    #[default]
    No,
    /// Of this PF of this host.
    OfThisHost(PciAddress),
    /// Passed through to this machine: its PF is on the hypervisor.
    PassedThrough,
    /// Of a PF that what was read does not name: the output of a tool.
    OfUnknownPf,
}

pub const MELLANOX: u16 = 0x15b3;

/// Device numbers of the PFs of BlueField and BlueField-2 to -4 (`mlx5_core_pci_table`,
/// drivers/net/ethernet/mellanox/mlx5/core/main.c).
pub const BLUEFIELD: [u16; 4] = [0xa2d2, 0xa2d6, 0xa2dc, 0xa2df];

/// True for a device number that only VFs have, mostly the one after its PF's:
/// a VF that was passed through to a machine shows no PF there
/// (`mlx5_core_pci_table`, `mlx4_pci_table`). 101e is shared by ConnectX-6 Dx and
/// all later cards.
pub const fn is_vf_id(vendor: u16, device: u16) -> bool {
    vendor == MELLANOX
        && matches!(
            device,
            0x1002 | 0x1004 | 0x1012 | 0x1014 | 0x1016 | 0x1018 | 0x101a | 0x101c | 0x101e | 0xa2d3
        )
}

/// The same of vendor and device as the kernel's log has them, `15b3:101e`.
pub fn is_vf_id_text(id: &str) -> bool {
    let number = |text| u16::from_str_radix(text, 16).ok();
    let id =
        id.split_once(':').and_then(|(vendor, device)| Some((number(vendor)?, number(device)?)));
    id.is_some_and(|(vendor, device)| is_vf_id(vendor, device))
}

/// The same of an HCA's type as sysfs and ibstat have it: `MT` and the device number
/// in decimal, `MT4126` (`hca_type_show()` of mlx5 and mlx4).
pub fn is_vf_hca_type(hca_type: &str) -> bool {
    let device = hca_type.strip_prefix("MT").and_then(|number| number.parse().ok());
    device.is_some_and(|device| is_vf_id(MELLANOX, device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sysfs_names_parse_and_print_back() {
        for text in ["0000:4b:00.0", "10000:e1:1f.7", "abcd1234:00:02.3"] {
            assert_eq!(text.parse::<PciAddress>().map(|a| a.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_not_a_full_address_is_refused() {
        for text in [
            "",
            "4b:00.0",
            "0000:4b:00",
            "0000:4b:20.0",
            "0000:4b:00.8",
            "0000:4b:00.0/x",
            "../..:00.0",
            "0000:+b:00.0",
        ] {
            assert!(text.parse::<PciAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn people_may_leave_out_domain_0() {
        let typed = |text| PciAddress::typed(text).map(|a| a.to_string());
        for (text, want) in [
            ("4b:00.0", "0000:4b:00.0"),
            ("0000:4b:00.0", "0000:4b:00.0"),
            ("10000:e1:1f.7", "10000:e1:1f.7"),
        ] {
            assert_eq!(typed(text), Ok(want.to_owned()));
        }
        for text in ["4b:00", "b:00.0", "4b:00.8", ":4b:00.0", "00.0", ""] {
            let e = typed(text).expect_err(text).to_string();
            assert!(e.starts_with(&format!("{text:?} is not a PCI address: ")), "{e}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _parsed: Result<PciAddress, _> = text.parse();
        }
    }

    #[test]
    fn a_vf_is_known_by_its_number_however_it_is_written() {
        for (text, hca_type, is) in [
            ("15b3:101e", "MT4126", true),
            ("15b3:a2d3", "MT41683", true),
            ("15b3:101b", "MT4123", false),
            ("8086:101e", "4126", false),
            ("15b3", "", false),
            ("15b3:fffff", "MT99999", false),
        ] {
            assert_eq!(is_vf_id_text(text), is, "{text}");
            assert_eq!(is_vf_hca_type(hca_type), is, "{hca_type}");
        }
    }
}
