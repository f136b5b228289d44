//! `ibprov plan --fleet DIR`: the plans of many hosts together.

use std::path::Path;

use serde::Deserialize;

use super::print;
use crate::cli::Format;
use crate::config::PfSelector;
use crate::config::pins::{PinnedPf, Pins};
use crate::host::{ReadError, Root};
use crate::model::{plan_fleet::FleetReport, read};
use crate::names::{Guid, PciAddress, harmless};
use crate::plan::fleet::Fleet;
use crate::show;

/// More findings are counted.
const MOST: usize = 100;

/// A plan of thousands of VFs is smaller, bytes.
const FILE_LIMIT: u64 = 4 << 20;

/// Judge the plans in the files of `dir`, one for each host: copies of their
/// pins (`NAME.toml`, or a directory NAME with `guid-pins.toml` or
/// `etc/ibprov/guid-pins.toml` in it), or what `ibprov plan --format json`
/// printed there (`NAME.json`).
///
/// # Errors
/// `dir` cannot be read; standard output is gone.
pub fn run(dir: &Path, format: Format) -> anyhow::Result<u8> {
    let (hosts, problems) = hosts(dir)?;
    let report = judged(&hosts, problems);
    print(&report.to_report(), format, |screen| screen.page(&show::plan::fleet(&report)))
}

/// What the plans of `hosts` come to.
pub(super) fn judged(hosts: &[(String, Pins)], problems: Vec<String>) -> FleetReport {
    let mut fleet = Fleet::default();
    for (host, pins) in hosts {
        fleet.add(host.clone(), pins);
    }
    let (findings, count) = fleet.judge(MOST);
    FleetReport { hosts: fleet.hosts.len(), vfs: fleet.vfs, count, findings, problems }
}

/// The plans of hosts, by their names.
type Plans = Vec<(String, Pins)>;

/// The plans in the files of `dir`, and what could not be read.
///
/// # Errors
/// `dir` cannot be read.
pub(super) fn hosts(dir: &Path) -> anyhow::Result<(Plans, Vec<String>)> {
    let root = Root::copy_at(dir)?;
    let (mut hosts, mut problems) = (Vec::new(), Vec::new());
    for name in root.list("/")? {
        match host(&root, &name) {
            Ok(found) => hosts.extend(found),
            Err(why) => problems.push(harmless(&format!("{}{why}", dir.display()))),
        }
    }
    Ok((hosts, problems))
}

/// The plan of one host; `None` for an entry that is not for us.
fn host(root: &Root, name: &str) -> Result<Option<(String, Pins)>, String> {
    let path = format!("/{name}");
    let said = |e: ReadError| e.to_string();
    if name.starts_with('.') {
        return Ok(None);
    }
    if let Some(host) = name.strip_suffix(".toml") {
        let text = root.text(&path, FILE_LIMIT).map_err(said)?;
        let pins = Pins::parse(&text).map_err(|why| format!("{path}: {why}"))?;
        return Ok(Some((harmless(host), pins)));
    }
    if let Some(host) = name.strip_suffix(".json") {
        let text = root.text(&path, FILE_LIMIT).map_err(said)?;
        let pins = planned(&text).map_err(|why| format!("{path}: {why}"))?;
        return Ok(Some((harmless(host), pins)));
    }
    for inside in ["guid-pins.toml", "etc/ibprov/guid-pins.toml"] {
        let path = format!("{path}/{inside}");
        match root.text(&path, FILE_LIMIT) {
            Ok(text) => {
                let pins = Pins::parse(&text).map_err(|why| format!("{path}: {why}"))?;
                return Ok(Some((harmless(name), pins)));
            }
            Err(e) if e.is_absent() => {}
            Err(e) => return Err(e.to_string()),
        }
    }
    match root.list(&path) {
        Ok(_) => {
            Err(format!("{path}: neither guid-pins.toml nor etc/ibprov/guid-pins.toml is in it"))
        }
        // A file of another kind, a README say.
        Err(_) => Ok(None),
    }
}

#[derive(Deserialize)]
struct PrintedPlan {
    pfs: Vec<PrintedPf>,
}

#[derive(Deserialize)]
struct PrintedPf {
    named: String,
    pci: Option<PciAddress>,
    node_guid: Option<Guid>,
    #[serde(default)]
    port_guids: Vec<Guid>,
    vfs: Vec<PrintedVf>,
    is_planned: bool,
}

#[derive(Deserialize)]
struct PrintedVf {
    wanted: Option<Wanted>,
}

#[derive(Deserialize)]
struct Wanted {
    node_guid: Guid,
    port_guid: Guid,
    port2_guid: Option<Guid>,
}

/// What `ibprov plan --format json` printed, as if it were pinned.
fn planned(text: &str) -> Result<Pins, String> {
    let plan: PrintedPlan = read(text).map_err(|e| e.to_string())?;
    let mut pins = Pins::default();
    for pf in plan.pfs {
        // A plan with errors has no VFs: without them the fleet is not whole.
        let Some(pci) = pf.pci.filter(|_| pf.is_planned) else {
            return Err(format!("{} has no plan, because of errors", pf.named));
        };
        let vfs = pf.vfs.into_iter().filter_map(|vf| vf.wanted);
        pins.pfs.push(PinnedPf {
            which: PfSelector::Pci(pci),
            pci,
            node_guid: pf.node_guid,
            port_guids: pf.port_guids,
            vfs: vfs.map(|vf| [Some(vf.node_guid), Some(vf.port_guid), vf.port2_guid]).collect(),
        });
    }
    Ok(pins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_plan_panics(
            text in "(?s).{0,40}",
            pci in "(0000:4b:00\\.0|(?s).{0,5})",
            guid in "(0200:0000:0000:0001|(?s).{0,5})",
        ) {
            let _text = planned(&text);
            let plan = serde_json::json!({"schema": 1, "exit_code": 0, "pfs": [{
                "named": text, "pci": pci, "node_guid": guid, "port_guids": [guid],
                "is_planned": true,
                "vfs": [{"wanted": {"node_guid": guid, "port_guid": guid}}, {"wanted": null}],
            }]});
            let good = pci.starts_with("0000:4b") && guid.starts_with("0200:0000:0000:0001");
            prop_assert_eq!(planned(&plan.to_string()).is_ok(), good);
        }
    }
}
