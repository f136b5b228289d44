//! `/etc/rdma/sriov-vfs` of rdma-core before version 32 and of the rdma package
//! before it: one VF to a line, `VF [port N] guid GUID [pkey ...]`.
//!
//! It names VFs, where ibprov names a PF and counts its VFs; so the host has to
//! tell which VF is whose.

use std::collections::BTreeMap;

use super::{Imported, shown};
use crate::names::{Guid, PciAddress, VfIndex};

pub const PATH: &str = "/etc/rdma/sriov-vfs";

/// Reads the file. `vf_of` tells of a VF's address whose it is, and which.
pub fn import(text: &str, vf_of: impl Fn(PciAddress) -> Option<(PciAddress, VfIndex)>) -> Imported {
    let mut imported = Imported::default();
    let mut pfs: BTreeMap<PciAddress, BTreeMap<VfIndex, Guid>> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((vf, settings)) = words.split_first() else { continue };
        if vf.starts_with('#') {
            continue;
        }
        let mut todo = |what: &str| imported.todo(number, what);
        let pci = match vf.parse::<PciAddress>() {
            Ok(pci) => pci,
            Err(e) => {
                todo(&e.to_string());
                continue;
            }
        };
        let guid = match settings_of(settings) {
            Ok(Settings { port: 1, guid: Some(guid), pkeys }) => {
                if pkeys > 0 {
                    todo(&format!(
                        "VF {pci}: the subnet manager assigns P_Keys of a VF by its port GUID: see `ibprov plan --partitions`"
                    ));
                }
                guid
            }
            Ok(Settings { port: 1, guid: None, .. }) => {
                todo(&format!(
                    "VF {pci} has no GUID in the file: the subnet manager assigned the GUID. Set one in the configuration"
                ));
                continue;
            }
            Ok(Settings { port, .. }) => {
                todo(&format!(
                    "VF {pci}: ibprov plans one port GUID for each VF, but this line is for port {port}"
                ));
                continue;
            }
            Err(why) => {
                todo(&format!("VF {pci}: {why}"));
                continue;
            }
        };
        match vf_of(pci) {
            Some((pf, index)) => {
                if let Some(before) = pfs.entry(pf).or_default().insert(index, guid) {
                    todo(&format!(
                        "VF {pci} has {before} in a line above: the later value is used"
                    ));
                }
            }
            None => todo(&format!(
                "VF {pci} with GUID {guid} is not on this host, so its PF and index are not known: create the VFs first, then import"
            )),
        }
    }
    for (pf, guids) in pfs {
        let (toml, missing) = pf_toml(pf, &guids);
        imported.toml.push_str(&toml);
        imported.todo.extend(missing);
    }
    imported
}

struct Settings {
    port: u32,
    guid: Option<Guid>,
    pkeys: usize,
}

fn settings_of(words: &[&str]) -> Result<Settings, String> {
    let mut settings = Settings { port: 1, guid: None, pkeys: 0 };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "port" => {
                let port = words.next().and_then(|w| w.parse().ok());
                settings.port = port.ok_or("\"port\" without a number")?;
            }
            "guid" => {
                let guid = words.next().ok_or("\"guid\" without a GUID")?;
                settings.guid = Some(guid.parse().map_err(|e| format!("{e}"))?);
            }
            // All words after it are P_Keys.
            "pkey" => settings.pkeys = words.by_ref().count(),
            "mac" | "vlan" | "rate" | "spoofchk" | "state" => {
                return Err(format!(
                    "{word:?} is a setting of Ethernet ports, which ibprov does not change"
                ));
            }
            other => return Err(format!("{} is not a known setting", shown(other))),
        }
    }
    Ok(settings)
}

fn pf_toml(pf: PciAddress, guids: &BTreeMap<VfIndex, Guid>) -> (String, Vec<String>) {
    let count = guids.keys().next_back().map_or(0, |last| last.get().saturating_add(1));
    let missing: Vec<VfIndex> =
        VfIndex::first(count).filter(|vf| !guids.contains_key(vf)).collect();
    let mut toml = format!("[[pf]]\npci = \"{pf}\"\n");
    toml.push_str(super::NAMES);
    if missing.is_empty() {
        toml.push_str("guid.list = [\n");
        for (vf, guid) in guids {
            toml.push_str(&format!("    \"{guid}\", # VF {vf}\n"));
        }
        toml.push_str("]\n\n");
        return (toml, Vec::new());
    }
    toml.push_str(&format!("vfs = {count}\n"));
    for (vf, guid) in guids {
        toml.push_str(&format!(
            "[[pf.vf]]\nindex = {vf}\nnode-guid = \"{guid}\"\nport-guid = \"{guid}\"\n"
        ));
    }
    toml.push('\n');
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let todo = format!(
        "PF {pf}: VF {} has no GUID in the file, but needs one: `ibprov config check` shows where, and a guid.template gives it",
        missing.join(", ")
    );
    (toml, vec![todo])
}
