//! The judgement of the node: every verb that speaks of the whole node is given the same answer
//! for the same host.

use std::collections::BTreeMap;

use super::ports::JudgedPort;
use super::{Account, Node, firmware};
use crate::config::timespan::TimeSpan;
use crate::host::start_up::FirstRun;
use crate::host::{Root, answer, clock, state, systemctl};
use crate::model::{
    self, BootReport, Code, Exit, Finding, GuestsReport, Judgement, RxeReport, Severity, ToDo,
};
use crate::names::{ModuleState, Rung, sh};
use crate::observe::{Look, units};
use crate::plan::needed_modules;

impl<'a> Node<'a> {
    /// Gathers what the judgement needs beside the look.
    pub fn account(&'a self, last_boot: Option<&'a BootReport>) -> Account<'a> {
        let mut problems = Vec::new();
        let pfs = self.planned(&mut problems);
        let mut failed_units = self.failed_units(&mut problems);
        let subnet_managers = self.subnet_managers(&mut failed_units, &mut problems);
        let guests = guests(self.root, &mut problems);
        let mut look = Look::new(self.root);
        let with_vfs = self.observed.functions.iter().filter(|f| f.physfn.is_none());
        let vfs = with_vfs.map(|f| (f.address, self.vfs(&mut look, f.address))).collect();
        problems.extend(look.problems);
        let boot_has = FirstRun::under_way(self.root, clock::now());
        Account {
            node: self,
            ports: self.ports.iter().map(|port| self.judged(port)).collect(),
            last_runs: self.last_runs(&pfs),
            pfs,
            subnet_managers,
            problems,
            vfs,
            boot_has: boot_has.filter(|_| self.root.is_live()).map(TimeSpan),
            last_boot,
            failed_units,
            guests,
        }
    }

    /// The units of ibprov's that have failed. A copied tree has none, nor has a host that
    /// systemd does not run on.
    pub(super) fn failed_units(&self, problems: &mut Vec<String>) -> Vec<String> {
        if !self.root.is_live() || !self.root.exists("/run/systemd/system") {
            return Vec::new();
        }
        systemctl::failed("ibprov*").unwrap_or_else(|e| {
            problems.push(format!("cannot query failed units from systemd: {}", answer(&e)));
            Vec::new()
        })
    }
}

impl Account<'_> {
    /// One for each code or family. Among equally grave findings the order is that of this list.
    const JUDGES: [fn(&Self, &mut Vec<Finding>); 31] = [
        |account, findings| {
            let why = unreadable(account.node.root);
            findings.extend(why.map(|why| Finding::error(Code::HostUnreadable, why)));
        },
        |account, findings| findings.extend(account.boot_in_progress()),
        Self::ports_not_ready,
        Self::left_out,
        Self::ethernet,
        Self::ports_not_active,
        Self::fabric,
        |account, findings| {
            findings.extend(account.node.soft_roce.iter().filter_map(RxeReport::finding));
        },
        Self::vf_ports,
        |account, findings| {
            findings.extend(account.node.subnet_manager_findings(&account.subnet_managers));
        },
        |account, findings| findings.extend(account.node.contradictions()),
        Self::ports_degraded,
        Self::pcie,
        Self::narrow_links,
        Self::descriptions,
        Self::netns,
        Self::modules,
        Self::without_node,
        |account, findings| findings.extend(account.guests.iter().cloned()),
        |account, findings| {
            let Node { root, config, observed, .. } = account.node;
            findings.extend(firmware::findings(root, config, observed));
        },
        |account, findings| findings.extend(units::other_agents(account.node.root)),
        Self::switched_off,
        Self::silent,
        Self::planned_vfs,
        Self::vf_guids,
        Self::unplanned_vfs,
        Self::duplicate_guids,
        Self::boot_and_units,
        Self::settings,
        Self::unmatched_names,
        Self::unwatched,
    ];

    /// Judge the node; `configuration` is what is wrong with the configuration.
    pub fn judge(&self, configuration: Vec<Finding>) -> Judgement {
        let mut findings = configuration;
        for judge in Self::JUDGES {
            judge(self, &mut findings);
        }
        let planned = self.pfs.iter().map(|pf| (pf.object(), pf.count())).collect();
        let Node { observed, soft_roce, .. } = self.node;
        let has_adapter = observed.functions.iter().any(|f| self.node.is_shown(f));
        Judgement::new(self.of_ports(), planned, has_adapter, !soft_roce.is_empty(), findings)
    }

    pub(super) fn is_booting(&self) -> bool {
        self.boot_in_progress().is_some()
    }

    /// That the first run of ibprov.service in this boot is waiting, and for what. Nothing that
    /// it waits for makes up for a port that is lost.
    fn boot_in_progress(&self) -> Option<Finding> {
        let deadline = self.boot_has.filter(|_| !self.ports.iter().any(JudgedPort::is_lost))?;
        let mut awaited: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for port in self.ports.iter().filter(|port| port.may_come()).map(|port| port.progress) {
            let lacking = port.missing().map(Rung::lacking).unwrap_or_default();
            let name = match (&port.rdma, port.port) {
                (Some(device), Some(number)) => format!("{device}/{number}"),
                _ => port.label().to_string(),
            };
            awaited.entry(lacking.strip_prefix("no ").unwrap_or(lacking)).or_default().push(name);
        }
        for pf in self.pfs.iter().filter(|pf| self.vfs_may_come(pf)) {
            awaited.entry("VFs").or_default().push(pf.object().to_string());
        }
        let awaited: Vec<String> = awaited
            .iter()
            .map(|(lacking, names)| format!("{} ({lacking})", names.join(", ")))
            .collect();
        let message = format!(
            "boot not finished, waits for {}, deadline {deadline} after its start",
            awaited.join(" and ")
        );
        let finding = Finding::warning(Code::BootInProgress, message);
        (!awaited.is_empty()).then(|| finding.look([ToDo::run("systemctl status ibprov")]))
    }

    fn netns(&self, findings: &mut Vec<Finding>) {
        if let Some(netns) = self.node.netns() {
            findings.extend(netns.deviation().into_iter().chain(netns.contradictions()));
        }
    }

    /// Modules that this host needs, beside those that a port lacks.
    fn modules(&self, findings: &mut Vec<Finding>) {
        let Node { config, observed, facts, ports, .. } = self.node;
        let is_booting = self.is_booting();
        for module in needed_modules(config, observed, !ports.is_empty()) {
            if observed.modules.get(module) != Some(&ModuleState::Absent)
                || self.node.is_lacked_by_a_port(module)
            {
                continue;
            }
            findings.push(match facts.modules.get(module).filter(|trouble| trouble.tells()) {
                Some(trouble) => trouble.finding(module),
                None if is_booting => continue,
                None if self.node.expectation.goal == Rung::Rdma
                    && module.as_str() == "ib_ipoib" =>
                {
                    let message = "not loaded: the ports have no netdev, and nothing on this host is configured for one";
                    Finding::new(Code::ModuleNotLoaded, Severity::Info, message)
                        .about(module)
                        .now([ToDo::run("modprobe ib_ipoib")])
                }
                None => Finding::warning(Code::ModuleNotLoaded, "not loaded, although configured")
                    .about(module)
                    .look([ToDo::run("ibprov boot --dry-run")]).now([ToDo::run(format!("modprobe {module}"))]),
            });
        }
    }

    fn switched_off(&self, findings: &mut Vec<Finding>) {
        let line = self.node.root.attribute("/proc/cmdline").unwrap_or_default();
        if line.split_whitespace().any(|word| word == "ibprov=0") {
            let message =
                "ibprov=0 is on the kernel command line: no unit of ibprov runs in this boot";
            findings.push(Finding::new(Code::IbprovSwitchedOff, Severity::Info, message));
        }
    }

    /// Adapters and the kernel, where they have not answered.
    fn silent(&self, findings: &mut Vec<Finding>) {
        for (pci, silence) in &self.node.survey.silent {
            let message = match silence {
                Some(silence) => silence.to_string(),
                None => "its state could not be queried".to_owned(),
            };
            let finding = Finding::error(Code::AdapterSilent, message);
            findings.push(
                finding
                    .about(pci)
                    .look([ToDo::run("dmesg")])
                    .look([ToDo::run(format!("devlink health show pci/{pci} reporter fw"))]),
            );
        }
        if let Some(silence) = self.node.survey.rtnl {
            let message = format!(
                "network settings cannot be read: a process holds the RTNL lock, and the kernel {silence}"
            );
            findings.push(Finding::error(Code::RtnlHeld, message).look([ToDo::run("dmesg")]).look(
                [ToDo::with(
                    "find the process that hangs: an ip, ifup or modprobe in state D",
                    "ps -eo pid,stat,wchan:32,args | grep ' D'",
                )],
            ));
        }
    }

    /// How the last boot ended, and the units that have failed.
    fn boot_and_units(&self, findings: &mut Vec<Finding>) {
        if let Some(boot) = self.last_boot.filter(|boot| boot.verdict.exit() != Exit::Good) {
            let code = boot.verdict.exit().code();
            let message = format!("{} (exit code {code})", boot.headline());
            let finding = Finding::warning(Code::BootFailed, message);
            findings.push(finding.look([ToDo::run("journalctl -b -u ibprov.service")]));
        }
        for unit in &self.failed_units {
            let finding = Finding::warning(Code::UnitFailed, "the unit has failed").about(unit);
            findings.push(finding.look([ToDo::run(format!("systemctl status {}", sh(unit)))]));
        }
    }

    /// Settings of interfaces that cannot be made, or are left as they are, and RDMA devices with
    /// another name than the configured one.
    fn settings(&self, findings: &mut Vec<Finding>) {
        let settings: Vec<_> =
            self.node.settings().into_iter().chain(self.node.misnamed()).collect();
        Finding::add_untold(findings, &settings);
    }
}

/// Why it is not known which PCI devices there are, if so.
pub fn unreadable(root: &Root) -> Option<String> {
    const DEVICES: &str = "/sys/bus/pci/devices";
    (!root.exists(DEVICES))
        .then(|| format!("the PCI devices are not known: {DEVICES} does not exist"))
}

/// The guests that did not come up in this boot, as the last run of `ibprov guests` says.
fn guests(root: &Root, problems: &mut Vec<String>) -> Vec<Finding> {
    let path = format!("{}/guests.json", state::RUN_DIR);
    let text = match root.text(&path, 16 << 20) {
        Ok(text) => text,
        Err(e) => {
            problems.extend((!e.is_absent()).then(|| e.to_string()));
            return Vec::new();
        }
    };
    let report = model::read::<GuestsReport>(&text);
    let report = report.map_err(|e| problems.push(format!("{path}: {e}")));
    let findings = report.map(|report| report.to_report().findings).unwrap_or_default();
    findings.into_iter().filter(|finding| finding.code == Code::GuestFailed).collect()
}
