//! `[[rxe]]`: soft RoCE devices, each on a netdev.

use super::draft::Row;
use super::keys::{RXE, rxe as key};
use super::merge::Merged;
use super::problem::{Place, Problem, Problems};
use super::{InterfaceRule, InterfaceSelector, Modules};
use crate::names::{IfName, ModuleName, RdmaName};

/// The module of soft RoCE.
pub const MODULE: &str = "rdma_rxe";

/// A soft RoCE device that ibprov creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RxeRow {
    /// The name of the RDMA device.
    pub name: RdmaName,
    /// The netdev that it uses.
    pub netdev: IfName,
    /// File and line, for messages.
    pub origin: String,
}

/// The rows, judged together and against the names that `interfaces` gives.
pub(super) fn rows(
    merged: &Merged,
    interfaces: &[InterfaceRule],
    problems: &mut Problems,
) -> Vec<RxeRow> {
    let mut rows: Vec<(RxeRow, Place)> = Vec::new();
    for row in merged.tables(RXE) {
        let Some((row, netdev_at)) = one(row, problems) else { continue };
        let named = |rule: &&InterfaceRule| {
            let is_selected = matches!(&rule.which, InterfaceSelector::Name(pattern) if pattern.to_string() == row.netdev.as_str());
            is_selected || rule.name.as_ref() == Some(&row.netdev)
        };
        if let Some(rule) = interfaces.iter().find(named) {
            Problem::new(format!("rxe.netdev {} is an IPoIB interface", row.netdev))
                .at(&netdev_at, "soft RoCE needs an Ethernet netdev")
                .help(format!(
                    "{} configures this netdev as IPoIB; its adapter already has RDMA",
                    rule.origin
                ))
                .add_to(problems);
            continue;
        }
        let same =
            |other: &&(RxeRow, Place)| other.0.name == row.name || other.0.netdev == row.netdev;
        match rows.iter().find(same) {
            Some((other, other_at)) => {
                let what = if other.name == row.name {
                    format!("two [[rxe]] have the name {}", row.name)
                } else {
                    format!("two [[rxe]] have the netdev {}", row.netdev)
                };
                Problem::new(what)
                        .repeated(&netdev_at, other_at)
                        .help("a netdev can have only one soft RoCE device, and a name can belong to only one: keep one of the two; `rxe = []` in a file between them clears the list before it").add_to(problems);
            }
            None => rows.push((row, netdev_at)),
        }
    }
    rows.into_iter().map(|(row, _)| row).collect()
}

fn one(row: &Row, problems: &mut Problems) -> Option<(RxeRow, Place)> {
    for key in [&*key::NAME, &key::NETDEV] {
        let help = "give both name and netdev, e.g. name = \"rxe0\", netdev = \"eth1\"";
        row.require("rxe", key, help, problems);
    }
    let name = row.value(key::NAME)?;
    let (netdev, at) = row.field(key::NETDEV)?;
    Some((RxeRow { name, netdev, origin: row.place.to_string() }, at.clone()))
}

/// Has the module of soft RoCE loaded where there are `rows`.
pub(super) fn need_module(
    rows: &[RxeRow],
    modules: &mut Modules,
    place: Option<&Place>,
    problems: &mut Problems,
) {
    let (Some(_), Ok(module)) = (rows.first(), MODULE.parse::<ModuleName>()) else { return };
    if modules.exclude.contains(&module) {
        let problem = Problem::new(format!("[[rxe]] needs {MODULE}, which modules.exclude names"));
        let problem =
            place.into_iter().fold(problem, |p, at| p.at(at, "soft RoCE is configured here"));
        problems.push(problem.help("remove it from modules.exclude, or remove [[rxe]]"));
    } else if !modules.load.contains(&module) {
        modules.load.push(module);
    }
}
