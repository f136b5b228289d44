//! `lspci`, `ibv_devices` and `mlxconfig`.

use serde::{Deserialize, Serialize};

use super::super::event::Origin;
use super::{LIMIT, put};
use crate::check::pattern::{caught_one, has_any, word};
use crate::names::RdmaName;

/// A PCI function as `lspci` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciSeen {
    /// Its address as written, perhaps without domain.
    pub address: String,
    /// The driver bound to it.
    pub driver: Option<String>,
    /// All its lines, the first of them whole.
    pub text: String,
    pub details: Vec<String>,
    pub origin: Origin,
}

impl PciSeen {
    /// True if it is an InfiniBand card or its VF, by class or by name.
    pub fn is_infiniband(&self) -> bool {
        let text = self.text.to_ascii_lowercase();
        text.contains("infiniband") || text.contains("[0207]") || text.contains("omni-path")
    }
}

/// An RDMA device as `ibv_devices` lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceSeen {
    pub name: String,
    /// Its node GUID, 16 hex digits.
    pub node_guid: String,
    pub origin: Origin,
    pub text: String,
}

/// A firmware setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting {
    /// The adapter as the tool names it: an address, perhaps without domain, or a device of
    /// MFT; empty where the dump does not say.
    pub device: String,
    /// Its name, upper case.
    pub name: String,
    /// What the adapter has after its next reset.
    pub value: String,
    /// What it has now, where the tool tells that too.
    pub current: Option<String>,
    pub origin: Origin,
    pub text: String,
}

impl Setting {
    /// True if the adapter has another value after its next reset.
    pub fn is_pending(&self) -> bool {
        self.current.as_ref().is_some_and(|current| *current != self.value)
    }
}

/// The columns of a table of firmware settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Columns {
    /// The last is what counts.
    #[default]
    Last,
    /// The last but one is the present value.
    Changes,
}

#[derive(Debug, Default)]
pub(super) struct HardwareReader {
    in_pci: bool,
    device: String,
    columns: Columns,
}

impl HardwareReader {
    /// A command was typed.
    pub(super) fn typed(&mut self, command: &str) {
        self.columns = Columns::Last;
        if has_any(command, &["mlxconfig", "mstconfig"]) {
            self.device = caught_one(command, " -d {}").map(word).unwrap_or_default().to_owned();
        }
    }

    /// The lines of `mlxconfig` that tell what the following ones are.
    fn heading(&mut self, text: &str, settings: &mut Vec<Setting>) {
        let text = text.trim();
        if let Some(device) = ["Device:", "PCI device:"].iter().find_map(|w| text.strip_prefix(w)) {
            self.device = word(device).to_owned();
        } else if let Some(columns) = text.strip_prefix("Configurations:") {
            // "Default Current Next Boot" of a query, "Next Boot New" of a change.
            let columns = columns.trim();
            let both = columns.contains("Current") && columns.ends_with("Next Boot");
            self.columns = match both || columns.ends_with("New") {
                true => Columns::Changes,
                false => Columns::Last,
            };
        } else if text.contains("Apply new Configuration") && text.ends_with(": n") {
            settings.retain(|setting| setting.device != self.device || !setting.is_pending());
        }
    }

    pub(super) fn gap(&mut self) {
        self.in_pci = false;
    }

    pub(super) fn line(
        &mut self,
        text: &str,
        origin: Origin,
        devices: &mut Vec<DeviceSeen>,
        pci: &mut Vec<PciSeen>,
        settings: &mut Vec<Setting>,
    ) {
        let mut words = text.split_whitespace();
        if let (Some(name), Some(guid), None) = (words.next(), words.next(), words.next())
            && guid.len() == 16
            && guid.bytes().all(|b| b.is_ascii_hexdigit())
            && name.parse::<RdmaName>().is_ok()
        {
            let (name, node_guid) = (name.to_owned(), guid.to_owned());
            put(devices, DeviceSeen { name, node_guid, origin, text: text.trim().to_owned() });
        }
        self.pci(text, origin, pci);
        self.heading(text, settings);
        let mut words = text.split_whitespace();
        let mut name = words.next();
        if name == Some("*") {
            // `mlxconfig -e` marks what is not the default.
            name = words.next();
        }
        if let (
            Some(name @ ("SRIOV_EN" | "NUM_OF_VFS" | "LINK_TYPE_P1" | "LINK_TYPE_P2")),
            Some(value),
        ) = (name, words.next())
            && settings.len() < LIMIT
        {
            let before = words.clone().rev().nth(1).unwrap_or(value);
            let bare = |value: &str| value.trim_start_matches('=').to_owned();
            let last = bare(words.last().unwrap_or(value));
            let current = (self.columns == Columns::Changes).then(|| bare(before));
            // Of one adapter what was asked last counts.
            settings.retain(|known| known.device != self.device || known.name != name);
            settings.push(Setting {
                device: self.device.clone(),
                name: name.to_owned(),
                value: last,
                current,
                origin,
                text: text.trim().to_owned(),
            });
        }
    }

    fn pci(&mut self, text: &str, origin: Origin, pci: &mut Vec<PciSeen>) {
        let address = word(text);
        if is_pci_address(address) && text.contains(": ") && !text.starts_with(char::is_whitespace)
        {
            let (address, text) = (address.to_owned(), text.trim().to_owned());
            self.in_pci = put(pci, PciSeen { address, text, origin, ..PciSeen::default() });
        } else if self.in_pci && text.starts_with([' ', '\t']) {
            if let Some(function) = pci.last_mut().filter(|f| f.details.len() < 128) {
                if let Some(driver) = caught_one(text, "Kernel driver in use: {}") {
                    function.driver = Some(word(driver).to_owned());
                }
                function.details.push(text.trim().to_owned());
            }
        } else {
            self.in_pci = false;
        }
    }
}

/// `04:00.0` or `0000:04:00.0`.
fn is_pci_address(word: &str) -> bool {
    let full = if word.len() == 7 { format!("0000:{word}") } else { word.to_owned() };
    full.parse::<crate::names::PciAddress>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> (Vec<PciSeen>, Vec<Setting>) {
        let mut reader = HardwareReader::default();
        let (mut devices, mut pci, mut settings) = (Vec::new(), Vec::new(), Vec::new());
        for line in text.lines() {
            if line.is_empty() {
                reader.gap();
            } else {
                let origin = Origin::default();
                reader.line(line, origin, &mut devices, &mut pci, &mut settings);
            }
        }
        (pci, settings)
    }

    #[test]
    fn dumps_are_read() {
        let (pci, settings) = read(
            "04:00.0 Infiniband controller: Mellanox X\n\tKernel driver in use: mlx5_core\n\n         SRIOV_EN       False(0)\n* NUM_OF_VFS 0 0 8\n",
        );
        assert_eq!(pci[0].driver.as_deref(), Some("mlx5_core"));
        assert!(pci[0].is_infiniband());
        let settings: Vec<_> =
            settings.iter().map(|s| (s.name.as_str(), s.value.as_str())).collect();
        assert_eq!(settings, [("SRIOV_EN", "False(0)"), ("NUM_OF_VFS", "8")]);
    }

    proptest! {
        #[test]
        fn no_dump_panics(text in r"((04:00\.0|: |SRIOV_EN |\t|[a-zÄ0-9 ]){0,5}\n){0,8}") {
            read(&text);
        }
    }
}
