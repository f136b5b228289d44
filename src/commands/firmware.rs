//! `ibprov firmware`: the settings in the firmware of adapters, shown and set by mstconfig.

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use super::print;
use crate::cli::{FirmwareArgs, Format};
use crate::config::{Config, FirmwareCard};
use crate::firmware::answer::ToolOutput;
use crate::firmware::hindrance;
use crate::firmware::node;
use crate::firmware::record::{self, Identity, Written};
use crate::firmware::task::{Host, Task};
use crate::host::firmware_tool::{self, Tool};
use crate::host::lock::{Held, Locks};
use crate::host::start_up::boot_id;
use crate::host::{Root, clock, process, site_files};
use crate::model::firmware::{CardSettings, FirmwareReport};
use crate::names::{BLUEFIELD, IsVf, MELLANOX, PathState, PciAddress, Target};
use crate::node::firmware::{identity, read_record};
use crate::observe::pf::dir;
use crate::observe::target::meant;
use crate::observe::{Observed, Observer, PciFunction};
use crate::show;

/// Show the settings of the adapters that are configured, or of those of `args`; with --apply
/// write what differs.
///
/// # Errors
/// A copied tree; not root; the tool is not installed; the record cannot be read; standard
/// output is gone.
pub fn run(args: &FirmwareArgs, config: &Config, root: &Root, format: Format) -> Result<u8> {
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
        boot_id: boot_id(root)
            .ok_or_else(|| anyhow!("cannot read /proc/sys/kernel/random/boot_id"))?,
        used: vec![tool.name],
        tool,
        args,
        format,
    };
    let adapters: Vec<_> = chosen(&run.observed, config, &named)
        .into_iter()
        .map(|(pci, card)| run.adapter(pci, card))
        .collect::<Result<_>>()?;
    let report = FirmwareReport { tool: run.used.join(", "), adapters };
    print(&report.to_report(), format, |screen| show::firmware::text(&report, screen))
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
    boot_id: String,
    tool: Tool,
    /// By which names.
    used: Vec<&'static str>,
    args: &'a FirmwareArgs,
    format: Format,
}

impl Run<'_> {
    fn adapter(
        &mut self,
        pci: PciAddress,
        configured: Option<&FirmwareCard>,
    ) -> Result<CardSettings> {
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
                let record = read_record(self.root).map_err(|e| anyhow!(e))?.unwrap_or_default();
                let written = record.of(pci, &identity).to_vec();
                let tool = self.tool.clone();
                let mut host = AtCard { run: self, pci, identity, tool, lock };
                task.run(&mut card, written, &mut host)?;
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
    tool: Tool,
    lock: Held,
}

impl Host for AtCard<'_, '_> {
    fn tool(&mut self, args: &[String]) -> Result<ToolOutput, String> {
        // With the kernel module of MFT a query of a function that is gone ends the kernel
        // (Mellanox/mstflint issue 1786).
        if !self.run.root.exists(&dir(self.pci)) {
            return Err("the PCI function has been removed since this run began".to_owned());
        }
        let command = format!("{} {}", self.tool.name, args.join(" "));
        let output = self.tool.run(args, &mut self.lock);
        let output = output.map_err(|e| format!("{command}: {}", crate::host::answer(&e)))?;
        match output.left {
            Some(pid) => Err(format!(
                "{command}: process {pid} has not ended 1 min after its start. It is left alone, because a tool that is ended leaves the adapter's semaphore taken. To go on: wait for its end, see `cat /proc/{pid}/stack`"
            )),
            None => Ok(ToolOutput {
                command,
                stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
                stderr: output.stderr,
                failure: output.failure.map(|failure| failure.to_string()),
            }),
        }
    }

    fn change_tool(&mut self) -> bool {
        let Some(other) = self.tool.other() else { return false };
        self.run.used.retain(|name| *name != other.name);
        self.run.used.push(other.name);
        self.tool = other;
        true
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
        let failed = |why: String| format!("cannot write the record {}: {why}", record::PATH);
        let until = clock::now() + RECORD;
        let lock = Locks::in_run().and_then(|locks| locks.take_until("firmware-record", until));
        let _lock = lock.map_err(|e| failed(e.to_string()))?;
        keep(self.run.root, self.pci, self.identity.clone(), written).map_err(failed)
    }
}

/// How long another run may take to write the record.
const RECORD: Duration = Duration::from_secs(10);

/// Put what was written into an adapter to what the record has of the others now; who calls
/// has the lock of the record.
fn keep(
    root: &Root,
    pci: PciAddress,
    identity: Identity,
    written: &[Written],
) -> Result<(), String> {
    let mut record = read_record(root)?.unwrap_or_default();
    record.put(pci, identity, written.to_vec());
    let text = serde_json::to_string_pretty(&record).map_err(|e| e.to_string())?;
    let directory = record::PATH.rsplit_once('/').map_or("/", |(directory, _)| directory);
    let put = |path: &str, what: &PathState| {
        site_files::put(root, path, what).map_err(|e| crate::host::answer(&e))
    };
    put(directory, &PathState::Directory)?;
    put(record::PATH, &PathState::own_file(text + "\n"))
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
#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::FirmwareValue;

    #[test]
    fn what_is_kept_of_one_adapter_stays_when_another_is_written() {
        let dir = tempfile::tempdir().expect("directory");
        std::fs::create_dir_all(dir.path().join("var/lib")).expect("directory");
        let root = Root::copy_at(dir.path()).expect("root");
        let pcis: [PciAddress; 2] =
            ["0000:4b:00.0", "0000:5e:00.0"].map(|p| p.parse().expect("address"));
        let written = Written {
            name: "NUM_OF_VFS".parse().expect("name"),
            value: FirmwareValue::Number(8),
            boot_id: "b".to_owned(),
            time: 1,
            said: None,
        };
        for pci in pcis {
            // As each run does that has looked at the record before another has written it.
            keep(&root, pci, Identity::default(), std::slice::from_ref(&written)).expect("kept");
        }
        let record = read_record(&root).expect("read").expect("a record");
        for pci in pcis {
            assert_eq!(
                record.of(pci, &Identity::default()),
                std::slice::from_ref(&written),
                "{pci}"
            );
        }
    }
}
