//! The keys of `[[firmware]]`.

/// The keys of one `[[firmware]]`.
pub(crate) mod firmware {
    use super::super::kinds::{Key, Kind, Settings};
    use super::super::words;
    use crate::names::PciAddress;

    keys! { KEYS:
        PCI: PciAddress = "pci", Kind::OneOrMore(&words::PCI), "",
            "The adapter by the PCI address of one of its functions, or a list of adapters.";
        SET: Settings = "set", Kind::Settings, "",
            "The settings by the names that mstconfig and mlxconfig have for them, each with its value.";
    }
}
