//! PCI device numbers that only VFs have.

use serde::{Deserialize, Serialize};

use super::PciAddress;

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

/// PCI vendor Mellanox.
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
