//! `ibprov firmware`: the settings in the firmware of adapters, shown and set by mstconfig.

use std::io::{self, Write as _};

use anyhow::{anyhow, bail};

use super::print;
use crate::cli::{FirmwareArgs, Format};
use crate::config::{Config, FirmwareCard};
use crate::firmware::answer::Said;
use crate::firmware::hindrance;
use crate::firmware::judge::Past;
use crate::firmware::node::{self, Function};
use crate::firmware::record::{self, Identity, Record, Written};
use crate::firmware::task::{Host, Task};
use crate::host::firmware_tool::{self, Tool};
use crate::host::lock::{Held, Locks};
use crate::host::{Root, clock, process, site_files};
use crate::names::{BLUEFIELD, IsVf, LinkLayer, MELLANOX, PathState, PciAddress, Target};
use crate::observe::link::card as card_of;
use crate::observe::pf::dir;
use crate::observe::target::meant;
use crate::observe::{Look, Observed, Observer, PciFunction};
use crate::report::common::{Code, Finding, Severity};
use crate::report::firmware::{CardSettings, FirmwareReport};
use crate::workers::{Answer as WorkerAnswer, Client, Request};

/// Show the settings of the adapters that are configured, or of those of `args`; with --apply
/// write what differs.
///
/// # Errors
/// A copied tree; not root; the tool is not installed; the record cannot be read; standard
/// output is gone.
pub fn run(
    args: &FirmwareArgs,
    config: &Config,
    root: &Root,
    format: Format,
) -> anyhow::Result<u8> {
    if !root.is_live() {
        bail!(
            "firmware cannot be combined with --root: the adapters of a copied tree cannot be asked; `ibprov status --root` judges what the tree shows"
        );
    }
    if !process::is_root() {
        bail!("firmware must be run as root, who alone may ask the firmware of adapters: use sudo");
    }
    let tool = firmware_tool::find().ok_or_else(|| {
        anyhow!(
            "neither mstconfig nor mlxconfig is installed: install the package mstflint (or NVIDIA's MFT)"
        )
    })?;
    if let Some(why) = firmware_tool::hindrance() {
        bail!("{why}");
    }
    let observed = Observer::new(root).look_at_pfs();
    let mut named = Vec::new();
    for target in &args.hcas {
        // An address is taken as it is: the adapter may be gone.
        match target {
            Target::Pci(pci, None) => named.push(*pci),
            target => {
                let meant = meant(target, root, &observed)?;
                named.extend(meant.iter().map(|meant| meant.function.address));
            }
        }
    }
    let mut run = Run {
        root,
        observed,
        record: read_record(root).map_err(|e| anyhow!(e))?.unwrap_or_default(),
        boot_id: boot_id(root).ok_or_else(|| anyhow!("cannot read {BOOT_ID}"))?,
        tool,
        args,
        format,
    };
    let adapters: Vec<_> = chosen(&run.observed, config, &named)
        .into_iter()
        .map(|(pci, card)| run.adapter(pci, card))
        .collect::<anyhow::Result<_>>()?;
    let report = FirmwareReport { tool: run.tool.name.to_owned(), adapters };
    print(&report.told(), format, |screen| report.to_text(screen))
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

fn boot_id(root: &Root) -> Option<String> {
    root.attribute(BOOT_ID).ok().filter(|id| !id.is_empty())
}

fn read_record(root: &Root) -> Result<Option<Record>, String> {
    match root.text(record::PATH, record::LIMIT) {
        Err(e) if e.is_absent() => Ok(None),
        Err(e) => Err(format!("cannot read the record of firmware settings: {e}")),
        Ok(text) => Record::parse(&text).map(Some).map_err(|e| {
            format!("{e}. To go on without it: remove the file; what was written before is written again then")
        }),
    }
}

/// The adapters to look at, each with what is configured for it: those that are named, else
/// those that are configured, else all.
fn chosen<'a>(
    observed: &Observed,
    config: &'a Config,
    named: &[PciAddress],
) -> Vec<(PciAddress, Option<&'a FirmwareCard>)> {
    let mut pcis: Vec<PciAddress> = match (named, config.firmware.as_slice()) {
        ([], []) => {
            observed.functions.iter().filter(|f| is_adapter(f)).map(|f| f.address).collect()
        }
        ([], cards) => cards.iter().map(|card| card.pci).collect(),
        (named, _) => named.to_vec(),
    };
    let mut seen: Vec<PciAddress> = Vec::new();
    pcis.retain(|pci| {
        let is_new = !seen.iter().any(|other| other.is_beside(*pci));
        seen.push(*pci);
        is_new
    });
    pcis.into_iter().map(|pci| (pci, FirmwareCard::of(&config.firmware, pci))).collect()
}

fn is_adapter(function: &PciFunction) -> bool {
    function.vendor == MELLANOX
        && function.is_vf() == IsVf::No
        && function.ib_driver == Some("mlx5_core")
        && !function.manages_nvswitch()
}

struct Run<'a> {
    root: &'a Root,
    observed: Observed,
    record: Record,
    boot_id: String,
    tool: Tool,
    args: &'a FirmwareArgs,
    format: Format,
}

impl Run<'_> {
    fn adapter(
        &mut self,
        pci: PciAddress,
        configured: Option<&FirmwareCard>,
    ) -> anyhow::Result<CardSettings> {
        let identity = identity(self.root, &self.observed, pci);
        let mut card = CardSettings::new(pci, identity.firmware.clone());
        let wanted = configured.map(|card| card.settings.as_slice()).unwrap_or_default();
        if configured.is_some_and(FirmwareCard::is_without_sriov) {
            card.findings.push(node::without_sriov(pci));
        }
        let functions = &self.observed.functions;
        let function = functions.iter().find(|f| f.address == pci);
        let of_card = functions.iter().filter(|f| f.address.is_beside(pci) && f.physfn.is_none());
        let task = Task {
            pci,
            wanted,
            ports: u8::try_from(of_card.count()).unwrap_or(1).clamp(1, 2),
            is_bluefield: function.is_some_and(|f| BLUEFIELD.contains(&f.device)),
            boot_id: &self.boot_id.clone(),
            now: clock::unix_seconds(),
            apply: self.args.apply,
            again: self.args.again,
        };
        let lockdown = self.root.attribute("/sys/kernel/security/lockdown").unwrap_or_default();
        let is_there = self.root.exists(&dir(pci));
        let may = hindrance::none(function, is_there, &lockdown, &self.observed.kernel, &mut card);
        match may.and_then(|()| lock(pci)) {
            Ok(lock) => {
                let written = self.record.of(pci, &identity).to_vec();
                task.run(&mut card, written, &mut AtCard { run: self, pci, identity, lock })?;
            }
            Err(why) => task.unreadable(&mut card, why),
        }
        Ok(card)
    }
}

/// The host, as the task at an adapter sees it.
struct AtCard<'a, 'b> {
    run: &'a mut Run<'b>,
    pci: PciAddress,
    identity: Identity,
    lock: Held,
}

impl Host for AtCard<'_, '_> {
    fn tool(&mut self, args: &[String]) -> Result<Said, String> {
        let command = format!("{} {}", self.run.tool.name, args.join(" "));
        let output = self.run.tool.run(args, &mut self.lock);
        let output = output.map_err(|e| format!("{command}: {}", crate::host::answer(&e)))?;
        match output.left {
            Some(pid) => Err(format!(
                "{command}: process {pid} has not ended 1 min after its start. It is left alone, because a tool that is ended leaves the adapter's semaphore taken. To go on: wait for its end, see `cat /proc/{pid}/stack`"
            )),
            None => Ok(Said {
                command,
                stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
                stderr: output.stderr,
                failure: output.failure.map(|failure| failure.to_string()),
            }),
        }
    }

    fn announce(&mut self, text: &str) -> io::Result<()> {
        if self.run.format != Format::Text {
            return Ok(());
        }
        let mut out = crate::host::terminal::stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    fn keep(&mut self, written: &[Written]) -> Result<(), String> {
        let record = &mut self.run.record;
        record.put(self.pci, self.identity.clone(), written.to_vec());
        let failed = |why: String| format!("cannot write the record {}: {why}", record::PATH);
        let text = serde_json::to_string_pretty(record).map_err(|e| failed(e.to_string()))?;
        let directory = record::PATH.rsplit_once('/').map_or("/", |(directory, _)| directory);
        let put = |path: &str, what: &PathState| {
            let put = site_files::put(self.run.root, path, what);
            put.map_err(|e| failed(crate::host::answer(&e)))
        };
        put(directory, &PathState::Directory)?;
        put(record::PATH, &PathState::own_file(text + "\n"))
    }
}

fn lock(pci: PciAddress) -> Result<Held, String> {
    // One name for all functions of the adapter.
    let pci = pci.to_string();
    let slot = pci.split('.').next().unwrap_or(&pci);
    let taken = Locks::in_run().and_then(|locks| locks.try_take(&format!("firmware-{slot}")));
    taken.map_err(|e| {
        format!("another run, or the tool that it has started, is at this adapter: {e}")
    })
}

/// Which adapter is in the slot, and which firmware it has.
fn identity(root: &Root, observed: &Observed, pci: PciAddress) -> Identity {
    let functions = observed.functions.iter().filter(|f| f.address.is_beside(pci));
    let mut functions = functions.filter(|f| f.physfn.is_none());
    let mut look = Look::new(root);
    let firmware = functions.find_map(|f| {
        f.rdma.first().and_then(|rdma| card_of(&mut look, f.address, &rdma.name).firmware)
    });
    // Who asks an adapter that hangs waits for ever: a child does.
    let serial = match Client::new(root).ask_all(&[Request::Serial(pci)]).pop() {
        Some(Ok(WorkerAnswer::Serial(serial))) => serial,
        _ => None,
    };
    Identity { serial, firmware }
}

/// What the host shows of the configured settings that is not as configured. Neither the tool
/// nor the adapter's registers are used.
pub(super) fn findings(root: &Root, config: &Config, observed: &Observed) -> Vec<Finding> {
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
