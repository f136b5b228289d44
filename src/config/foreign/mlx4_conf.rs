//! `/etc/rdma/mlx4.conf` of rdma-core on Red Hat's systems: the types of the ports of ConnectX
//! adapters up to ConnectX-3, one adapter to a line: `PCI-ADDRESS PORT1 [PORT2]`.
//!
//! A modprobe rule runs `mlx4-setup.sh` on it, which skips adapters that are not there, and of
//! two lines for one adapter applies the later one last.

use std::collections::BTreeMap;

use super::{Imported, shown};
use crate::names::{PciAddress, PortType, Words as _};

pub const PATH: &str = "/etc/rdma/mlx4.conf";

/// Reads the file. `may_be_here` is false for an adapter that the host certainly lacks.
pub fn import(text: &str, may_be_here: impl Fn(PciAddress) -> bool) -> Imported {
    let mut imported = Imported::default();
    let mut adapters: BTreeMap<PciAddress, (usize, Vec<Option<PortType>>)> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split_whitespace();
        let Some(adapter) = words.next().filter(|word| !word.starts_with('#')) else { continue };
        let pci = match adapter.parse::<PciAddress>() {
            Ok(pci) => pci,
            Err(e) => {
                // The script looks for a folder of this name.
                let whole = format!("0000:{adapter}").parse::<PciAddress>().ok();
                imported.todo(number, &whole.map_or_else(
                    || e.to_string(),
                    |pci| format!("mlx4-setup.sh skips an address without its domain, so that this line has no effect today: if it is meant, write {pci}"),
                ));
                continue;
            }
        };
        if !may_be_here(pci) {
            imported.todo(
                number,
                &format!("adapter {pci} is not on this host: boot would expect the adapter and wait for it"),
            );
            continue;
        }
        match types(&words.collect::<Vec<_>>()) {
            Ok((types, autos)) => {
                for port in autos {
                    imported.todo(
                        number,
                        &format!("adapter {pci}, port {port}: ibprov sets ib or eth, and does not change a port whose type the adapter detects (auto)"),
                    );
                }
                if let Some((before, _)) = adapters.insert(pci, (number, types)) {
                    imported.todo(
                        before,
                        &format!("adapter {pci} has another line, {number}, which is used"),
                    );
                }
            }
            Err(why) => imported.todo(number, &format!("adapter {pci}: {why}")),
        }
    }
    for (pci, (_, types)) in adapters {
        let ports = (1..).zip(types).filter_map(|(port, of)| Some((port, of?)));
        for (port, of) in ports {
            imported.toml.push_str(&format!(
                "[[port]]\npci = \"{pci}\"\nport = {port}\ntype = \"{}\"\n",
                of.typed()
            ));
            if of == PortType::Eth {
                // The file says what it is to be, not that the node needs it.
                imported.toml.push_str("required = false\n");
            }
            imported.toml.push('\n');
        }
    }
    imported
}

/// The types of the ports in order, `None` for one that is left as it is, and the numbers of
/// those.
fn types(words: &[&str]) -> Result<(Vec<Option<PortType>>, Vec<usize>), String> {
    // As `read device port1 port2` does, which gives the rest to the last one.
    if words.is_empty() || words.len() > 2 {
        return Err("expected a type for each of one or two ports".to_owned());
    }
    let mut types = Vec::new();
    let mut autos = Vec::new();
    for (port, word) in (1..).zip(words) {
        match (PortType::from_typed(word), *word) {
            (Some(of), _) => types.push(Some(of)),
            (None, "auto") => {
                autos.push(port);
                types.push(None);
            }
            (None, other) => {
                return Err(format!(
                    "port {port}: {} is not a port type: expected ib, eth or auto",
                    shown(other)
                ));
            }
        }
    }
    match types.as_slice() {
        [Some(PortType::Eth), second] if *second != Some(PortType::Eth) => {
            Err("port 1 can be eth only if port 2 is: mlx4-setup.sh refuses it".to_owned())
        }
        _ => Ok((types, autos)),
    }
}
