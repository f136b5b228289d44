//! `ibprov config generate`: the ports of this node as tables of a configuration, to review.

use std::collections::BTreeMap;

use crate::config::{Config, Problems, Source, resolve};
use crate::host::Root;
use crate::ladder::active::Activity;
use crate::model::PortProgress;
use crate::names::{LinkLayer, PciAddress, PcieWidth, PortNumber, Rate};
use crate::node::{Node, roce_row, unreadable};
use crate::observe::{self, Look, PciFunction};

/// What a table says of its adapters.
#[derive(Debug, PartialEq)]
struct Table {
    /// Vendor and device.
    model: String,
    link_layer: LinkLayer,
    /// Empty for all.
    ports: Vec<PortNumber>,
    rate: Option<Rate>,
    pcie_width: Option<PcieWidth>,
    firmware: Option<String>,
}

/// The tables of the ports that are expected by `config` and active, and whether those are all.
/// Where none is expected, the RoCE ports of the host are meant.
///
/// # Errors
/// The PCI devices are not known.
pub(super) fn tables(root: &Root, config: &Config) -> anyhow::Result<(String, bool)> {
    if let Some(why) = unreadable(root) {
        anyhow::bail!(why);
    }
    let node = Node::look(root, config, None);
    let unwatched = node.unwatched();
    if unwatched.is_empty() {
        return Ok(of_node(&node));
    }
    let source = Source { path: "-".to_owned(), text: roce_row(&unwatched) };
    let config = resolve(vec![source], Problems::default())
        .map_err(|problems| anyhow::anyhow!("{problems}"))?;
    Ok(of_node(&Node::look(root, &config.config, None)))
}

fn of_node(node: &Node<'_>) -> (String, bool) {
    let mut inactive = String::new();
    let mut active: BTreeMap<PciAddress, Vec<PortNumber>> = BTreeMap::new();
    for port in node.ports.iter().filter(|port| !port.is_ethernet()) {
        match (port.pci, port.port, state(node, port)) {
            (Some(pci), Some(number), Ok(())) => active.entry(pci).or_default().push(number),
            (.., state) => {
                let why = state.err().unwrap_or("it is not known where it is");
                inactive.push_str(&format!("#   {}: {why}\n", port.label()));
            }
        }
    }
    let mut tables: Vec<(Table, Vec<PciAddress>)> = Vec::new();
    let functions = active.iter().filter_map(|(pci, ports)| Some((node.function(*pci)?, ports)));
    for (function, ports) in functions {
        for table in of_function(node, function, ports) {
            match tables.iter_mut().find(|(other, _)| *other == table) {
                Some((_, adapters)) => adapters.push(function.address),
                None => tables.push((table, vec![function.address])),
            }
        }
    }
    let mut text = "# The ports that are active on this node now. Review them, and save this file as\n# /etc/ibprov/ibprov.d/ports.toml.\n".to_owned();
    for (table, adapters) in &tables {
        let is_equal = |(other, _): &&(Table, _)| {
            (&other.model, other.link_layer) == (&table.model, table.link_layer)
        };
        let rate = |table: &Table| table.rate.as_ref().map(|rate| rate.gbps).unwrap_or_default();
        let standard = tables.iter().filter(is_equal).max_by(|(one, some), (other, more)| {
            some.len().cmp(&more.len()).then(rate(one).total_cmp(&rate(other)))
        });
        text.push_str(&table.text(adapters, standard.filter(|(other, _)| other != table)));
    }
    if !inactive.is_empty() {
        text.push_str(&format!("\n# Expected and not active:\n{inactive}"));
    } else if tables.is_empty() {
        text.push_str("\n# There is none.\n");
    }
    (text, inactive.is_empty() && !tables.is_empty())
}

/// Why the fabric does not use an expected port, if so.
fn state(node: &Node<'_>, port: &PortProgress) -> Result<(), &'static str> {
    if let (None, Some(missing)) = (&port.rdma, port.missing()) {
        return Err(missing.lacking());
    }
    match node.activity(port) {
        Activity::Active => Ok(()),
        Activity::Lacks(lack, _) => Err(lack.lacking()),
        Activity::NotTold => Err("the adapter has not answered"),
        Activity::NotShown => Err("the copy does not show its state"),
    }
}

/// A table for each link layer and rate of the `active` ports of `function`.
fn of_function(node: &Node<'_>, function: &PciFunction, active: &[PortNumber]) -> Vec<Table> {
    let pci = function.address;
    let mut tables: Vec<Table> = Vec::new();
    for device in &function.rdma {
        let firmware = observe::link::card(&mut Look::new(node.root), pci, &device.name).firmware;
        for port in device.ports.iter().filter(|port| active.contains(&port.number)) {
            let answer = node.survey.port(pci, &device.name, port.number);
            let table = Table {
                model: format!("{:04x}:{:04x}", function.vendor, function.device),
                link_layer: port.link_layer,
                ports: vec![port.number],
                rate: answer.and_then(|answer| answer.link.rate.clone()),
                pcie_width: node.survey.pcie.get(&pci).and_then(|link| link.width),
                firmware: firmware.clone(),
            };
            let same = |other: &&mut Table| {
                (&other.rate, other.link_layer) == (&table.rate, table.link_layer)
            };
            match tables.iter_mut().find(same) {
                Some(other) => other.ports.extend(table.ports),
                None => tables.push(table),
            }
        }
        if let [table] = tables.as_mut_slice()
            && table.ports.len() == device.ports.len()
        {
            table.ports.clear();
        }
    }
    tables
}

impl Table {
    /// As TOML for these adapters. What differs from the `standard` of more adapters of the model
    /// is not asked for.
    fn text(&self, adapters: &[PciAddress], standard: Option<&(Self, Vec<PciAddress>)>) -> String {
        let quoted: Vec<String> = adapters.iter().map(|pci| format!("\"{pci}\"")).collect();
        let mut text = "\n".to_owned();
        let mut rate_mark = "";
        if let Some((standard, equals)) = standard {
            let rates = (&self.rate, &standard.rate);
            let of = |rate: &Option<Rate>| rate.as_ref().map_or("unknown".to_owned(), gbps);
            let differences = [
                (rates.0 != rates.1).then(|| format!("rate {}, not {}", of(rates.0), of(rates.1))),
                (self.ports != standard.ports).then(|| "its active ports".to_owned()),
                (self.pcie_width != standard.pcie_width).then(|| "PCIe width".to_owned()),
                (self.firmware != standard.firmware).then(|| "firmware".to_owned()),
            ];
            let differences: Vec<String> = differences.into_iter().flatten().collect();
            text.push_str(&format!(
                "# differs from {} of model {}: {}\n",
                equals.len(),
                self.model,
                differences.join(", ")
            ));
            rate_mark = if rates.0 == rates.1 { "" } else { "# " };
        }
        let one_or_all = |all: &[String]| match all {
            [one] => one.clone(),
            few if few.len() <= 4 => format!("[{}]", few.join(", ")),
            all => format!("[\n  {},\n]", all.join(",\n  ")),
        };
        text.push_str(&format!("[[port]]\npci = {}\n", one_or_all(&quoted)));
        let ports: Vec<String> = self.ports.iter().map(ToString::to_string).collect();
        if !ports.is_empty() {
            text.push_str(&format!("port = {}\n", one_or_all(&ports)));
        }
        let layer: &str = self.link_layer.into();
        text.push_str(&format!("link-layer = \"{layer}\"\n"));
        for line in [
            self.rate.as_ref().map(|rate| format!("{rate_mark}rate = \"{}\"", gbps(rate))),
            self.pcie_width.map(|width| format!("# pcie-width = \"{width}\"")),
            self.firmware.as_ref().map(|version| format!("# firmware = \"{version}\"")),
        ] {
            text.extend(line.map(|line| format!("{line}\n")));
        }
        text
    }
}

fn gbps(rate: &Rate) -> String {
    format!("{} Gb/s", rate.gbps)
}
