//! What ibprov has written to the firmware of adapters, kept over reboots: the firmware loads
//! a new value only when it is reset, so that only the record tells a value that waits for a
//! reboot from one that a reboot has not made effective.

use serde::{Deserialize, Serialize};

use crate::names::{FirmwareName, FirmwareValue, PciAddress};

pub const PATH: &str = "/var/lib/ibprov/firmware.json";
/// The version of the file's format.
const FORMAT: u32 = 1;
/// No record is larger, bytes.
pub const LIMIT: u64 = 1 << 20;

/// What was written, adapter by adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    format: u32,
    cards: Vec<CardRecord>,
}

/// What was written to one adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CardRecord {
    /// One of its functions.
    pci: PciAddress,
    #[serde(flatten)]
    identity: Identity,
    settings: Vec<Written>,
}

/// Which adapter it is, and which firmware it has; what is not known is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The serial number in its vital product data.
    pub serial: Option<String>,
    /// The version of its firmware (`fw_ver`).
    pub firmware: Option<String>,
}

/// A value that was written, or was about to be when ibprov ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    pub name: FirmwareName,
    pub value: FirmwareValue,
    /// The boot in which it was written (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
    /// When, seconds since 1970.
    pub time: u64,
    /// What the tool said makes it effective.
    pub said: Option<String>,
}

impl Identity {
    /// False if both are known and differ in something.
    fn may_be(&self, other: &Self) -> bool {
        let is_other =
            |a: &Option<String>, b: &Option<String>| a.is_some() && b.is_some() && a != b;
        !is_other(&self.serial, &other.serial) && !is_other(&self.firmware, &other.firmware)
    }
}

impl Default for Record {
    fn default() -> Self {
        Self { format: FORMAT, cards: Vec::new() }
    }
}

impl Record {
    /// The record that this text is.
    ///
    /// # Errors
    /// It is none of this format; a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let record: Self = serde_json::from_str(text)
            .map_err(|e| format!("{PATH} is not a record of firmware settings: {e}"))?;
        match record.format {
            FORMAT => Ok(record),
            other => {
                Err(format!("{PATH} has format {other}, but this ibprov reads format {FORMAT}"))
            }
        }
    }

    /// What was written to the adapter of this function, if it is the same adapter with the
    /// same firmware.
    pub fn of(&self, pci: PciAddress, identity: &Identity) -> &[Written] {
        let is_it = |card: &&CardRecord| card.pci.is_beside(pci) && card.identity.may_be(identity);
        self.cards.iter().find(is_it).map_or(&[], |card| &card.settings)
    }

    /// Keep `settings` as what was written to this adapter, in place of what was known.
    pub fn put(&mut self, pci: PciAddress, identity: Identity, settings: Vec<Written>) {
        self.cards.retain(|card| !card.pci.is_beside(pci));
        if !settings.is_empty() {
            self.cards.push(CardRecord { pci, identity, settings });
        }
    }

    /// An adapter in this slot is in it.
    pub fn has(&self, pci: PciAddress) -> bool {
        self.cards.iter().any(|card| card.pci.is_beside(pci))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_adapter_or_firmware_voids_what_was_written() {
        let identity = |serial: &str, firmware: &str| {
            let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            Identity { serial: text(serial), firmware: text(firmware) }
        };
        let pci = "0000:4b:00.0".parse().expect("address");
        let beside = "0000:4b:00.1".parse().expect("address");
        let written = Written {
            name: "NUM_OF_VFS".parse().expect("name"),
            value: FirmwareValue::Number(8),
            boot_id: "b".to_owned(),
            time: 1,
            said: None,
        };
        let mut record = Record::default();
        record.put(pci, identity("S1", "20.31"), vec![written]);
        let text = serde_json::to_string(&record).expect("JSON");
        let record = Record::parse(&text).expect("a record");
        for same in [("S1", "20.31"), ("", "20.31"), ("S1", ""), ("", "")] {
            assert_eq!(record.of(beside, &identity(same.0, same.1)).len(), 1, "{same:?}");
        }
        for other in [("S2", "20.31"), ("S1", "20.32"), ("S2", "")] {
            assert_eq!(record.of(pci, &identity(other.0, other.1)).len(), 0, "{other:?}");
        }
        assert!(
            Record::parse("{}").is_err() && Record::parse(r#"{"format":2,"cards":[]}"#).is_err()
        );
    }
}
