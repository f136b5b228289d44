//! Pins: the GUIDs that VFs were once given, kept in a file so that no changed
//! host name, template or order of cards changes them.
//!
//! Pure: text in, text out. `ibprov plan --pin` writes the file.

use serde::Deserialize;

use crate::config::PfSelector;
use crate::names::{DmiDigest, Guid, Machine, PciAddress, VfGuids, harmless, is_hostile};

/// The pins of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    /// The host's name when it was pinned: one proof that the pins are this host's.
    pub host: Option<String>,
    /// The machine on which it was pinned, as far as that was known: what shows that a host of
    /// that name is another.
    pub machine: Machine,
    pub pfs: Vec<PinnedPf>,
}

/// The pinned GUIDs of one PF's VFs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedPf {
    /// How the configuration named the PF.
    pub which: PfSelector,
    /// Where the PF was.
    pub pci: PciAddress,
    /// Its node GUID, if it showed one.
    pub node_guid: Option<Guid>,
    /// The GUIDs of its ports, as far as it showed them.
    pub port_guids: Vec<Guid>,
    /// The GUIDs of each VF, from VF 0 on; no VF lacks its node GUID or its port GUID.
    pub vfs: Vec<VfGuids>,
}

impl PinnedPf {
    /// True if this is the card of `port_guids`.
    pub fn is_card(&self, port_guids: &[Guid]) -> bool {
        self.port_guids.iter().any(|guid| port_guids.contains(guid))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    schema: u32,
    #[serde(borrow)]
    host: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, borrow)]
    machine: FileMachine<'a>,
    #[serde(default, borrow)]
    pf: Vec<FilePf<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileMachine<'a> {
    #[serde(borrow)]
    product_uuid: Option<Word<'a>>,
    #[serde(borrow)]
    board_serial: Option<Word<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FilePf<'a> {
    #[serde(borrow)]
    config: FileSelector<'a>,
    #[serde(borrow)]
    pci: Word<'a>,
    #[serde(borrow)]
    node_guid: Option<Word<'a>>,
    #[serde(default, borrow)]
    port_guids: Vec<Word<'a>>,
    #[serde(default, borrow)]
    vfs: Vec<Vec<Word<'a>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
enum FileSelector<'a> {
    #[serde(borrow)]
    Pci(Word<'a>),
    #[serde(borrow)]
    PortGuid(Word<'a>),
    #[serde(borrow)]
    NodeGuid(Word<'a>),
    #[serde(borrow)]
    Rdma(Word<'a>),
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Word<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

impl Word<'_> {
    fn get<T: std::str::FromStr<Err: std::fmt::Display>>(&self) -> Result<T, String> {
        self.0.parse().map_err(|e: T::Err| e.to_string())
    }
}

impl Pins {
    /// Reads the text of a pin file.
    ///
    /// # Errors
    /// Why it is none, with its line, for people; harmless for a terminal.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File<'_> = toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            harmless(&format!("line {line}: {}", e.message()))
        })?;
        if file.schema != 1 {
            return Err(format!(
                "the file has schema {}, but this ibprov reads only schema 1: a newer version wrote the file",
                file.schema
            ));
        }
        let digest =
            |word: &Option<Word<'_>>| word.as_ref().map(Word::get::<DmiDigest>).transpose();
        let machine = || {
            let FileMachine { product_uuid, board_serial } = &file.machine;
            let (product_uuid, board_serial) = (digest(product_uuid)?, digest(board_serial)?);
            Ok(Machine { product_uuid, board_serial })
        };
        let machine = machine().map_err(|why: String| harmless(&format!("machine: {why}")))?;
        let pfs =
            file.pf.iter().enumerate().map(|(at, pf)| {
                pf.read().map_err(|why| harmless(&format!("pf {}: {why}", at + 1)))
            });
        let pfs = pfs.collect::<Result<_, _>>()?;
        Ok(Self { host: file.host.map(Into::into), machine, pfs })
    }

    /// The text of the pin file that holds these pins.
    pub fn to_toml(&self) -> String {
        let mut text = String::from(HEAD);
        if let Some(host) = &self.host {
            text.push_str(&format!("host = {}\n", quoted(host)));
        }
        let Machine { product_uuid, board_serial } = self.machine;
        let known = [("product-uuid", product_uuid), ("board-serial", board_serial)];
        let known = known.into_iter().filter_map(|(key, digest)| Some((key, digest?)));
        let known: Vec<String> = known.map(|(key, d)| format!("{key} = \"{d}\"")).collect();
        if !known.is_empty() {
            text.push_str(&format!("machine = {{ {} }}\n", known.join(", ")));
        }
        for pf in &self.pfs {
            let selector = match &pf.which {
                PfSelector::Pci(pci) => format!("pci = \"{pci}\""),
                PfSelector::PortGuid(guid) => format!("port-guid = \"{guid}\""),
                PfSelector::NodeGuid(guid) => format!("node-guid = \"{guid}\""),
                PfSelector::Rdma(name) => format!("rdma = \"{name}\""),
            };
            text.push_str(&format!("\n[[pf]]\nconfig = {{ {selector} }}\npci = \"{}\"\n", pf.pci));
            if let Some(guid) = pf.node_guid {
                text.push_str(&format!("node-guid = \"{guid}\"\n"));
            }
            if !pf.port_guids.is_empty() {
                let guids: Vec<_> = pf.port_guids.iter().map(|g| format!("\"{g}\"")).collect();
                text.push_str(&format!("port-guids = [{}]\n", guids.join(", ")));
            }
            text.push_str("vfs = [\n");
            for (vf, guids) in pf.vfs.iter().enumerate() {
                let guids: Vec<_> = guids.iter().flatten().map(|g| format!("\"{g}\"")).collect();
                text.push_str(&format!("    [{}], # VF {vf}\n", guids.join(", ")));
            }
            text.push_str("]\n");
        }
        text
    }
}

const HEAD: &str = "\
# The GUIDs of the VFs of this host, written by `ibprov plan --pin`.
# They take precedence over ibprov.toml: see ibprov-plan(8).
# machine: digests of DMI's product UUID and board serial number, which a clone lacks;
# config: how ibprov.toml names the PF; pci, node-guid, port-guids: which adapter
# it was then; vfs: node GUID and port GUIDs of each VF, from VF 0 on.
schema = 1
";

/// As a TOML basic string, in which a reader sees every character.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if is_hostile(c) => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

impl FilePf<'_> {
    fn read(&self) -> Result<PinnedPf, String> {
        let guids = self.port_guids.iter().map(Word::get);
        let vfs = self.vfs.iter().map(|vf| match vf.as_slice() {
            [node, port] => Ok([Some(node.get()?), Some(port.get()?), None]),
            [node, port, port2] => Ok([Some(node.get()?), Some(port.get()?), Some(port2.get()?)]),
            guids => Err(format!("expected 2 or 3 GUIDs for a VF, found {}", guids.len())),
        });
        Ok(PinnedPf {
            which: match &self.config {
                FileSelector::Pci(word) => PfSelector::Pci(word.get()?),
                FileSelector::PortGuid(word) => PfSelector::PortGuid(word.get()?),
                FileSelector::NodeGuid(word) => PfSelector::NodeGuid(word.get()?),
                FileSelector::Rdma(word) => PfSelector::Rdma(word.get()?),
            },
            pci: self.pci.get()?,
            node_guid: self.node_guid.as_ref().map(Word::get).transpose()?,
            port_guids: guids.collect::<Result<_, _>>()?,
            vfs: vfs.collect::<Result<_, String>>()?,
        })
    }
}

#[cfg(test)]
mod tests;
