//! `ibprov firmware`: the settings in the firmware of adapters, shown and set by mstconfig.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{anyhow, bail};

use super::print;
use crate::cli::{FirmwareArgs, Format};
use crate::config::{Config, FirmwareCard, FirmwareSetting};
use crate::firmware::answer::{self, Answer, Lack};
use crate::firmware::judge::{Past, judge, to_write};
use crate::firmware::node::{self, Function};
use crate::firmware::record::{self, Identity, Record, Written};
use crate::firmware::{BLUEFIELD, CPU_MODEL, CPU_OFFLOAD, shown};
use crate::host::firmware_tool::{self, Tool};
use crate::host::lock::{Held, Locks};
use crate::host::process::Output;
use crate::host::{Root, clock, process, site_files};
use crate::names::{FirmwareName, IsVf, LinkLayer, MELLANOX, PathState, PciAddress, harmless};
use crate::observe::link::card as card_of;
use crate::observe::pf::dir;
use crate::observe::{Look, Observed, Observer, PciFunction};
use crate::report::advice::Advice;
use crate::report::common::{Code, Finding};
use crate::report::firmware::{CardSettings, FirmwareReport, Setting, State, shown_value};
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
    let mut run = Run {
        root,
        observed,
        record: read_record(root).map_err(|e| anyhow!(e))?.unwrap_or_default(),
        boot_id: boot_id(root).ok_or_else(|| anyhow!("cannot read {BOOT_ID}"))?,
        tool,
        args,
        format,
    };
    let adapters: Vec<_> = chosen(&run.observed, config, &args.pci)
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

/// What was read of an adapter.
struct Read {
    answer: Answer,
    lacks: BTreeMap<FirmwareName, Lack>,
}

impl Run<'_> {
    fn adapter(
        &mut self,
        pci: PciAddress,
        configured: Option<&FirmwareCard>,
    ) -> anyhow::Result<CardSettings> {
        let wanted = configured.map(|card| card.settings.as_slice()).unwrap_or_default();
        let identity = identity(self.root, &self.observed, pci);
        let mut card = CardSettings {
            pci,
            device_type: None,
            firmware: identity.firmware.clone(),
            problem: None,
            effect: None,
            written: Vec::new(),
            settings: unread(wanted),
            findings: Vec::new(),
        };
        if configured.is_some_and(FirmwareCard::is_without_sriov) {
            card.findings.push(node::without_sriov(pci));
        }
        let begun = self.hindrance(pci, &mut card).map_or_else(|| lock(pci), Err);
        let mut lock = match begun {
            Ok(lock) => lock,
            Err(why) => {
                card.unreadable(why);
                return Ok(card);
            }
        };
        let names = self.names(pci, wanted);
        let read = match self.query(pci, names, &mut lock) {
            Ok(read) => read,
            Err(why) => {
                card.unreadable(why);
                return Ok(card);
            }
        };
        card.device_type.clone_from(&read.answer.device_type);
        if wanted.is_empty() {
            card.settings = all(&read.answer);
            return Ok(card);
        }
        let written = self.record.of(pci, &identity).to_vec();
        let past = Past { written: &written, boot_id: &self.boot_id };
        card.settings = judge(wanted, &read.answer, &read.lacks, past);
        self.name_the_tool(&mut card, &mut lock);
        let is_dpu = self.is_bluefield(pci)
            && read.answer.is(CPU_MODEL, 1)
            && read.answer.is(CPU_OFFLOAD, 0);
        if is_dpu {
            let why = "the BlueField is in DPU mode: set these from the BlueField's own system";
            card.problem = Some(why.to_owned());
        }
        let due = to_write(wanted, &card.settings, past, self.args.again);
        if !self.args.apply || is_dpu || due.is_empty() {
            return Ok(card);
        }
        self.announce(pci, &due, &card.settings)?;
        self.write(&mut card, (wanted, &due), &read.lacks, (&identity, written), &mut lock);
        Ok(card)
    }

    /// Why the adapter is not asked, if so.
    fn hindrance(&self, pci: PciAddress, card: &mut CardSettings) -> Option<String> {
        let Some(function) = self.observed.functions.iter().find(|f| f.address == pci) else {
            return Some(match self.root.exists(&dir(pci)) {
                true => "the function is not an adapter of a network".to_owned(),
                false => "no PCI function has this address, see `lspci -D -d 15b3:`".to_owned(),
            });
        };
        match function.is_vf() {
            IsVf::OfThisHost(pf) => {
                return Some(format!("the function is a VF of {pf}: use the address of the PF"));
            }
            IsVf::PassedThrough | IsVf::OfUnknownPf => {
                return Some("the function is a VF: its settings are those of the host".to_owned());
            }
            IsVf::No => {}
        }
        if function.vendor != MELLANOX {
            return Some("the adapter is not one of Mellanox or NVIDIA".to_owned());
        }
        let lockdown = self.root.attribute("/sys/kernel/security/lockdown").unwrap_or_default();
        if lockdown.contains('[') && !lockdown.contains("[none]") {
            // From Linux 6.18 on (drivers/net/ethernet/mellanox/mlx5/core/lib/nv_param.c).
            if kernel_is_at_least(&self.observed.kernel, (6, 18)) {
                card.findings.push(
                    Finding::new(Code::Notice, crate::report::common::Severity::Info, "the kernel can set the number of VFs itself")
                        .about(pci)
                        .advise([Advice::permanent(format!("devlink dev param set pci/{pci} name total_vfs value N cmode permanent (it gives each PF a number of its own: never beside NUM_OF_VFS)"))]),
                );
            }
            return Some("the kernel's lockdown (secure boot) closes the tool's path".to_owned());
        }
        None
    }

    fn is_bluefield(&self, pci: PciAddress) -> bool {
        let mut functions = self.observed.functions.iter();
        functions.any(|f| f.address == pci && BLUEFIELD.contains(&f.device))
    }

    /// The settings to ask for.
    fn names(&self, pci: PciAddress, wanted: &[FirmwareSetting]) -> Vec<FirmwareName> {
        let mut names: Vec<_> = match wanted {
            [] => {
                let functions = self.observed.functions.iter();
                let of_card =
                    functions.filter(|f| f.address.is_beside(pci) && f.physfn.is_none()).count();
                shown(u8::try_from(of_card).unwrap_or(1).clamp(1, 2))
            }
            wanted => wanted.iter().map(|setting| setting.name.clone()).collect(),
        };
        let has = |name: &str| names.iter().any(|n| n.as_str() == name);
        let mut also = Vec::new();
        if has(FirmwareName::NUM_OF_VFS) && !has(FirmwareName::PER_PF) {
            also.push(FirmwareName::PER_PF);
        }
        if self.is_bluefield(pci) {
            also.extend([CPU_MODEL, CPU_OFFLOAD].into_iter().filter(|name| !has(name)));
        }
        names.extend(also.into_iter().filter_map(|name| name.parse().ok()));
        names
    }

    /// Ask for `names`; what tool or adapter lack is left out of the next try.
    fn query(
        &self,
        pci: PciAddress,
        mut names: Vec<FirmwareName>,
        lock: &mut Held,
    ) -> Result<Read, String> {
        let mut lacks = BTreeMap::new();
        loop {
            let head = ["-d", &pci.to_string(), "-e", "q"].map(str::to_owned);
            let args: Vec<String> =
                head.into_iter().chain(names.iter().map(ToString::to_string)).collect();
            let said = self.call(&args, lock)?;
            let lacking = said.answer.errors.iter().find_map(|e| answer::lacking(e));
            match lacking {
                Some((name, lack)) if names.contains(&name) => {
                    names.retain(|other| *other != name);
                    lacks.insert(name, lack);
                    if names.is_empty() {
                        return Ok(Read { answer: Answer::default(), lacks });
                    }
                }
                _ => return said.good().map(|answer| Read { answer, lacks }),
            }
        }
    }

    fn call(&self, args: &[String], lock: &mut Held) -> Result<Said, String> {
        let command = format!("{} {}", self.tool.name, args.join(" "));
        let output = self.tool.run(args, lock);
        let output = output.map_err(|e| format!("{command}: {}", crate::host::answer(&e)))?;
        if let Some(pid) = output.left {
            return Err(format!(
                "{command}: process {pid} has not ended 1 min after its start. It is left alone, because a tool that is ended leaves the adapter's semaphore taken. To go on: wait for its end, see `cat /proc/{pid}/stack`"
            ));
        }
        let text = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), output.stderr);
        Ok(Said { command, answer: answer::read(&text), output })
    }

    /// The version of the tool that does not know a name.
    fn name_the_tool(&self, card: &mut CardSettings, lock: &mut Held) {
        if card.settings.iter().any(|s| s.state == State::UnknownName) {
            let version = self.tool.version(lock).unwrap_or_else(|e| e.to_string());
            let reason = format!("its database lacks the name: {}", harmless(&version));
            for setting in card.settings.iter_mut().filter(|s| s.state == State::UnknownName) {
                setting.reason = Some(reason.clone());
            }
        }
    }

    /// Say what is about to be written.
    fn announce(
        &self,
        pci: PciAddress,
        due: &[FirmwareSetting],
        settings: &[Setting],
    ) -> anyhow::Result<()> {
        if self.format != Format::Text {
            return Ok(());
        }
        let mut out = crate::host::terminal::stdout();
        for setting in due {
            let next =
                settings.iter().find(|s| s.name == setting.name).and_then(|s| s.next.clone());
            let next = next.unwrap_or_else(|| "unknown".to_owned());
            let wanted = shown_value(&setting.value);
            writeln!(out, "{pci}: {} of the next boot: {next} -> {wanted}", setting.name)?;
        }
        out.flush()?;
        Ok(())
    }

    /// Write `due`, and read back what the adapter has then: that alone counts.
    fn write(
        &mut self,
        card: &mut CardSettings,
        (wanted, due): (&[FirmwareSetting], &[FirmwareSetting]),
        lacks: &BTreeMap<FirmwareName, Lack>,
        (identity, mut written): (&Identity, Vec<Written>),
        lock: &mut Held,
    ) {
        let pci = card.pci;
        let not_set = |card: &mut CardSettings, why: &str| {
            for setting in card.settings.iter_mut().filter(|s| due.iter().any(|d| d.name == s.name))
            {
                (setting.state, setting.reason) = (State::NotSet, Some(why.to_owned()));
            }
        };
        // What has had effect since needs no record.
        let is_effective = |old: &Written| {
            let mut settings = card.settings.iter();
            settings.any(|s| s.name == old.name && s.state == State::AsWanted)
        };
        written.retain(|old| !is_effective(old) && !due.iter().any(|new| new.name == old.name));
        let new = due.iter().map(|setting| Written {
            name: setting.name.clone(),
            value: setting.value.clone(),
            boot_id: self.boot_id.clone(),
            time: clock::unix_seconds(),
            said: None,
        });
        written.extend(new);
        if let Err(why) = self.keep(pci, identity, written.clone()) {
            return not_set(card, &why);
        }
        let head = ["-d", &pci.to_string(), "-y", "set"].map(str::to_owned);
        let pairs = due.iter().map(|setting| format!("{}={}", setting.name, setting.value));
        let args: Vec<String> = head.into_iter().chain(pairs).collect();
        let said = match self.call(&args, lock) {
            Ok(said) => said,
            Err(why) => {
                card.problem = Some(why);
                return not_set(card, "it is not known whether the tool has written it");
            }
        };
        card.effect.clone_from(&said.answer.effect);
        for old in written.iter_mut().filter(|old| due.iter().any(|new| new.name == old.name)) {
            old.said.clone_from(&said.answer.effect);
        }
        if let Err(why) = self.keep(pci, identity, written.clone()) {
            card.findings.push(Finding::not_read(why).about(pci));
        }
        let names = self.names(pci, wanted).into_iter().filter(|name| !lacks.contains_key(name));
        let read = match self.query(pci, names.collect(), lock) {
            Ok(read) => read,
            Err(why) => {
                card.problem = Some(format!("after the write, {why}"));
                return not_set(card, "it is not known whether the adapter has it");
            }
        };
        let mut all_lacks = lacks.clone();
        all_lacks.extend(read.lacks);
        let past = Past { written: &written, boot_id: &self.boot_id };
        card.settings = judge(wanted, &read.answer, &all_lacks, past);
        let refused = said.good().err();
        for setting in card.settings.iter_mut().filter(|s| due.iter().any(|d| d.name == s.name)) {
            if setting.state != State::ToBeSet {
                card.written.push(setting.name.clone());
                continue;
            }
            let lost = || {
                "the tool reported success, and the adapter does not have it for the next boot"
                    .to_owned()
            };
            setting.state = State::NotSet;
            setting.reason = Some(refused.clone().unwrap_or_else(lost));
        }
        // What was refused was not written.
        if refused.is_some() {
            let is_refused = |old: &Written| {
                card.settings.iter().any(|s| s.name == old.name && s.state == State::NotSet)
            };
            written.retain(|old| !is_refused(old));
            if let Err(why) = self.keep(pci, identity, written) {
                card.findings.push(Finding::not_read(why).about(pci));
            }
        }
    }

    /// Keep in the record what was written to the adapter.
    fn keep(
        &mut self,
        pci: PciAddress,
        identity: &Identity,
        written: Vec<Written>,
    ) -> Result<(), String> {
        self.record.put(pci, identity.clone(), written);
        let failed = |why: String| format!("cannot write the record {}: {why}", record::PATH);
        let text = serde_json::to_string_pretty(&self.record).map_err(|e| failed(e.to_string()))?;
        let directory = record::PATH.rsplit_once('/').map_or("/", |(directory, _)| directory);
        let put = |path: &str, what: &PathState| {
            site_files::put(self.root, path, what).map_err(|e| failed(crate::host::answer(&e)))
        };
        put(directory, &PathState::Directory)?;
        put(record::PATH, &PathState::own_file(text + "\n"))
    }
}

/// What the tool has said, and how it ended.
struct Said {
    command: String,
    answer: Answer,
    output: Output,
}

impl Said {
    /// What it printed, if it succeeded; otherwise what it refused, or how it ended.
    fn good(self) -> Result<Answer, String> {
        let Self { command, answer, output } = self;
        if let (None, []) = (output.failure, answer.errors.as_slice()) {
            return Ok(answer);
        }
        let mut said = answer.errors;
        if said.is_empty() {
            let failure = output.failure.map(|failure| failure.to_string());
            said.extend(failure);
        }
        let stderr = output.stderr.lines().last().map(harmless).filter(|line| !line.is_empty());
        said.extend(stderr.filter(|line| !said.contains(line)));
        Err(format!("{command}: {}", said.join("; ")))
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

/// `wanted` before anything is known.
fn unread(wanted: &[FirmwareSetting]) -> Vec<Setting> {
    let one = |setting: &FirmwareSetting| Setting {
        name: setting.name.clone(),
        current: None,
        next: None,
        wanted: Some(setting.value.clone()),
        state: State::Unreadable,
        reason: None,
    };
    wanted.iter().map(one).collect()
}

/// All that was printed, where nothing is configured.
fn all(answer: &Answer) -> Vec<Setting> {
    let one = |shown: &answer::Shown| Setting {
        name: shown.name.clone(),
        current: shown.current.clone(),
        next: shown.next.clone(),
        wanted: None,
        state: State::Shown,
        reason: None,
    };
    answer.settings.iter().map(one).collect()
}

/// True if the kernel of this release, `6.18.3-1-amd64`, is that one or a later one.
fn kernel_is_at_least(release: &str, version: (u32, u32)) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse().ok());
    numbers.next().zip(numbers.next()).is_some_and(|of| of >= version)
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
        findings.push(Finding::new(Code::NotRead, crate::report::common::Severity::Info, message));
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
