//! The file of GUIDs of the SR-IOV network operator for Kubernetes,
//! `/etc/sriov-operator/infiniband/guids`: JSON, one object for each PF.
//!
//! Its manual spells the keys otherwise than its code reads them; both are
//! taken. VF n gets the n-th GUID, for node and port alike.

use serde::Deserialize;

use super::{Imported, NAMES, port_guid};
use crate::names::{Guid, GuidRange, PciAddress, harmless};

/// Where the operator reads it.
pub const PATH: &str = "/etc/sriov-operator/infiniband/guids";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pf {
    #[serde(alias = "pci_address", rename = "pciAddress", default)]
    pci: String,
    #[serde(alias = "pf_guid", rename = "pfGuid", default)]
    guid: String,
    #[serde(default)]
    guids: Vec<String>,
    #[serde(rename = "guidsRange")]
    range: Option<Range>,
    #[serde(rename = "rangeStart", default)]
    start: String,
    #[serde(rename = "rangeEnd", default)]
    end: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    #[serde(default)]
    start: String,
    #[serde(default)]
    end: String,
}

/// A range that is longer says nothing of how many VFs there are to be: the
/// most that a ConnectX port can have.
const MOST_VFS: u64 = 127;

/// Reads the file.
///
/// # Errors
/// It is no such JSON; why, for people.
pub fn import(text: &str) -> Result<Imported, String> {
    // A resource of Kubernetes has these two keys at its top level.
    let is_at_top = |key: &str| text.lines().any(|line| line.starts_with(key));
    if is_at_top("apiVersion:") && is_at_top("kind:") {
        return Err("it is a resource of Kubernetes in YAML, such as a SriovNetworkNodePolicy, and not the file of GUIDs: its numVfs and pfNames are for num-vfs and match of a [[pf]]".to_owned());
    }
    let pfs: Vec<Pf> = serde_json::from_str(text).map_err(|e| harmless(&e.to_string()))?;
    let mut imported = Imported::default();
    for (number, pf) in (1..).zip(&pfs) {
        match pf.to_toml() {
            Ok((toml, todo)) => {
                imported.toml.push_str(&toml);
                imported.todo.extend(todo.map(|todo| format!("PF {number} of the file: {todo}")));
            }
            Err(why) => imported.todo.push(format!("PF {number} of the file is left out: {why}")),
        }
    }
    Ok(imported)
}

impl Pf {
    fn to_toml(&self) -> Result<(String, Option<String>), String> {
        let selector = match (self.pci.as_str(), self.guid.as_str()) {
            ("", "") => return Err("the entry names no PF".to_owned()),
            (pci, "") => {
                let pci = pci.parse::<PciAddress>().map_err(|e| e.to_string())?;
                format!("pci = \"{pci}\"")
            }
            ("", guid) => {
                // The operator's code compares the 20 bytes of the PF's IPoIB address.
                format!("port-guid = \"{}\"", port_guid(guid)?)
            }
            _ => return Err("the entry names its PF twice, by address and by GUID".to_owned()),
        };
        let (start, end) = match &self.range {
            Some(range) if self.start.is_empty() && self.end.is_empty() => {
                (range.start.as_str(), range.end.as_str())
            }
            Some(_) => return Err("the entry gives a range twice".to_owned()),
            None => (self.start.as_str(), self.end.as_str()),
        };
        let guid = |text: &str| text.parse::<Guid>().map_err(|e| e.to_string());
        match (self.guids.as_slice(), start, end) {
            ([], "", "") => Err("the entry gives no GUIDs".to_owned()),
            ([], start, end) => {
                let (first, last) = (guid(start)?, guid(end)?);
                let range = GuidRange::new(first, last)?;
                let vfs = (last.value() - first.value()).saturating_add(1).min(MOST_VFS);
                let toml =
                    format!("[[pf]]\n{selector}\n{NAMES}vfs = {vfs}\nguid.range = \"{range}\"\n\n");
                let todo = "the number of VFs is in the operator's policy: vfs is set to the length of the range, at most 127";
                Ok((toml, Some(todo.to_owned())))
            }
            (guids, "", "") => {
                let mut toml = format!("[[pf]]\n{selector}\n{NAMES}guid.list = [\n");
                for (vf, text) in guids.iter().enumerate() {
                    toml.push_str(&format!("    \"{}\", # VF {vf}\n", guid(text)?));
                }
                toml.push_str("]\n\n");
                Ok((toml, None))
            }
            _ => Err("the entry gives both GUIDs and a range".to_owned()),
        }
    }
}
