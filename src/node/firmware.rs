//! Settings in firmware, as far as the host shows them without the tool.

use crate::config::{Config, FirmwareCard};
use crate::firmware::judge::Past;
use crate::firmware::node::{self, Function};
use crate::firmware::record::{self, Identity, Record};
use crate::host::start_up::boot_id;
use crate::host::{Root, process};
use crate::model::{Code, Finding, Severity};
use crate::names::{LinkLayer, PciAddress, Resource};
use crate::observe::link::card as card_of;
use crate::observe::pf::dir;
use crate::observe::{Look, Observed, PciFunction};
use crate::workers::{Answer as WorkerAnswer, Client, Request};

/// What the host shows of the configured settings that is not as configured. Neither the tool
/// nor the adapter's registers are used.
pub fn findings(root: &Root, config: &Config, observed: &Observed) -> Vec<Finding> {
    if config.firmware.is_empty() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let record = read_record(root).unwrap_or_else(|why| {
        findings.push(Finding::not_read(why));
        None
    });
    let boot_id = boot_id(root);
    let may_read = !root.is_live() || process::is_root();
    let is_in_record = |card: &FirmwareCard| record.as_ref().is_some_and(|r| r.has(card.pci));
    if !may_read && config.firmware.iter().any(is_in_record) {
        let message = format!(
            "{} is not judged: only root can read the serial numbers of adapters",
            record::PATH
        );
        findings.push(Finding::new(Code::NotRead, Severity::Info, message));
    }
    for card in &config.firmware {
        let pfs = observed
            .functions
            .iter()
            .filter(|f| f.address.is_beside(card.pci) && f.physfn.is_none() && f.driver.is_some());
        let functions: Vec<Function> = pfs.map(|f| function(root, f)).collect();
        let past = match (&record, &boot_id) {
            (Some(record), Some(boot_id)) if may_read && record.has(card.pci) => {
                let written = record.of(card.pci, &identity(root, observed, card.pci));
                Some(Past { written, boot_id })
            }
            _ => None,
        };
        findings.extend(node::judge(card, &functions, past));
    }
    findings
}

fn function(root: &Root, function: &PciFunction) -> Function {
    let total = root.attribute(&format!("{}/sriov_totalvfs", dir(function.address)));
    let class = function.class;
    Function {
        pci: function.address,
        total_vfs: total.ok().and_then(|total| total.parse().ok()).unwrap_or(0),
        link_layer: match (class.is_infiniband(), class.is_ethernet()) {
            (true, _) => Some(LinkLayer::InfiniBand),
            (_, true) => Some(LinkLayer::Ethernet),
            _ => None,
        },
    }
}

pub fn read_record(root: &Root) -> Result<Option<Record>, String> {
    match root.text(record::PATH, record::LIMIT) {
        Err(e) if e.is_absent() => Ok(None),
        Err(e) => Err(format!("cannot read the record of firmware settings: {e}")),
        Ok(text) => Record::parse(&text).map(Some).map_err(|e| {
            format!("{e}. To go on without it: remove the file; what was written before is written again then")
        }),
    }
}

pub fn identity(root: &Root, observed: &Observed, pci: PciAddress) -> Identity {
    let functions = observed.functions.iter().filter(|f| f.address.is_beside(pci));
    let mut functions = functions.filter(|f| f.physfn.is_none());
    let mut look = Look::new(root);
    let firmware = functions.find_map(|f| {
        f.rdma.first().and_then(|rdma| card_of(&mut look, f.address, &rdma.name).firmware)
    });
    // Who asks an adapter that hangs waits for ever: a child does.
    let mut client = Client::new(root).querying(Resource::Adapter(pci));
    let serial = match client.ask_one(&Request::Serial(pci)) {
        Ok(WorkerAnswer::Serial(serial)) => serial,
        _ => None,
    };
    Identity { serial, firmware }
}
