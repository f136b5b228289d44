//! `ibprov status`: one screen for what `ibstat`, `ibdev2netdev`, `ip link`
//! and `systemctl` say together.

mod table;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use self::table::table;
use super::advice::{Advice, ToDo};
use super::common::{Finding, Kind, Report, Verdict, listed, not_read};
use super::duration::duration;
use super::finding::Severity;
use super::screen::{self, Screen, Tone};
use crate::model::degraded::{Degraded, PcieLink};
use crate::model::hardware::{Card, Gid, Link, NetDevState, NodeDescription, PKeyEntry, Vf};
use crate::model::node::Judgement;
use crate::model::plan::PlannedPf;
use crate::model::rxe::{RxeReport, RxeState};
use crate::model::subnet_manager::SubnetManagerReport;
use crate::model::{Away, NotExpected};
use crate::names::{
    Guid, IfName, LinkLayer, LinkState, ModuleName, ModuleState, Object, PKey, PciAddress,
    PhysicalState, PortNumber, RdmaName, Rung, Words, few, harmless,
};

/// How much of it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What is wrong.
    Problems,
    /// A line for each port that is expected.
    Ports,
    /// All that is known of what was named.
    Named,
    /// All that is known.
    All,
}

/// An adapter that was named, or ports of it; or a VF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The function.
    pub pci: PciAddress,
    /// Its ports that are meant.
    pub ports: Vec<PortNumber>,
}

/// The whole picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    /// Whether the node is as it is meant to be.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// `uname -r`.
    pub kernel: String,
    /// ibprov's units.
    pub units: Units,
    /// How the last boot ended, from `/run/ibprov/boot.json`; absent if there
    /// was none.
    pub last_boot: Option<LastBoot>,
    /// The configured modules.
    pub modules: Vec<ModuleNow>,
    /// udev's state.
    pub udev: Udev,
    /// The expected ports and adapters of which the host shows nothing.
    pub absent: Vec<Absent>,
    /// The HCAs.
    pub hcas: Vec<Hca>,
    /// The soft RoCE devices that are configured, and those that are there.
    pub soft_roce: Vec<SoftRoce>,
    /// The configured subnet managers.
    pub subnet_managers: Vec<SubnetManagerReport>,
    /// RDMA devices without a PCI function of theirs.
    pub software_devices: Vec<RdmaName>,
    /// What could not be read.
    #[serde(skip)]
    pub problems: Vec<String>,
}

/// ibprov's standing with systemd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Units {
    /// Who answers to openibd.service.
    pub openibd: Owner,
    /// `sysinit.target` wants ibprov.service and nothing masks it: it runs at boot.
    pub enabled: bool,
    /// What is wrong, each with what to do.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// Who answers to openibd.service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// ibprov, by its alias.
    Ibprov,
    /// The vendor's unit or start script.
    Vendor,
    /// It is masked.
    Masked,
    /// No unit answers to that name.
    Nobody,
}

/// A soft RoCE device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SoftRoce {
    /// How it stands.
    #[serde(flatten)]
    pub rxe: RxeReport,
    /// Its GID table, if asked for.
    pub gids: Option<Vec<Gid>>,
}

/// A configured module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ModuleNow {
    /// Its name.
    pub name: ModuleName,
    /// How it is.
    pub state: ModuleState,
}

/// How far udev is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Udev {
    /// systemd-udevd can be reached (`/run/udev/control`); `null` of a copy without it.
    pub running: Option<bool>,
    /// No event is queued or being worked on (`/run/udev/queue`, the file
    /// that `udevadm settle` watches).
    pub settled: bool,
}

/// How the last boot ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LastBoot {
    /// How it ended, as in the report of the boot.
    pub verdict: Verdict,
    /// The exit code.
    pub exit_code: u8,
}

/// An expected port or adapter of which the host shows nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Absent {
    /// What is expected, as it was named.
    pub expected: String,
    /// Missing it is no failure; in JSON the opposite, `required`.
    #[serde(rename = "required", with = "super::common::opposite")]
    #[cfg_attr(test, schemars(with = "bool"))]
    pub optional: bool,
}

/// What is expected of a port or an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It has to come.
    Expected,
    /// It is waited for, and missing it is no failure.
    Optional,
    /// The configuration lists others.
    Unexpected,
    /// It is no port of a fabric for this host: handed over, denied, for NVSwitches, or
    /// Ethernet.
    Ignored,
}

/// A P_Key child of a port's netdev.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Child {
    /// Its name.
    pub name: IfName,
    /// Its P_Key.
    pub pkey: Option<PKey>,
    /// How it is set.
    #[serde(flatten)]
    pub state: NetDevState,
}

/// A PCI function that is a candidate, or was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hca {
    /// Where it is.
    pub pci: PciAddress,
    /// Vendor and device, `15b3:101b`.
    pub id: String,
    /// The driver bound to it.
    pub driver: Option<String>,
    /// Its RDMA device.
    pub rdma: Option<RdmaName>,
    /// Its node GUID.
    pub node_guid: Option<Guid>,
    /// Names of card and firmware.
    #[serde(flatten)]
    pub card: Card,
    /// Its node description; `None` if it has no RDMA device.
    pub node_description: Option<NodeDescription>,
    /// Its PCIe link; `None` if the kernel does not report it.
    pub pcie: Option<PcieLink>,
    /// What is expected of it.
    pub role: Role,
    /// Why it is not waited for at boot, if so.
    pub left_out: Option<NotExpected>,
    /// The ports of its RDMA device; empty while it has none.
    pub ports: Vec<PortStatus>,
    /// The ladder of the function itself while it has no port.
    pub ladder: Ladder,
    /// Its VFs.
    pub vfs: Vec<VfStatus>,
    /// What is planned for them; `ibprov plan` has it in JSON.
    #[serde(skip)]
    pub planned: Option<PlannedPf>,
    /// What the kernel log has of it, of one that was named on this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

/// What the kernel log has of an adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct History {
    /// The last lines.
    pub last: Vec<Told>,
    /// How many there are.
    pub of: usize,
    /// The kernel has overwritten its oldest lines.
    pub cut_off: bool,
}

/// A line of the kernel log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Told {
    /// When, microseconds of the kernel's clock.
    pub usec: u64,
    /// How long ago.
    pub ago_usec: u64,
    pub text: String,
}

/// A change of a link that the kernel has logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkChange {
    /// What it has become: `ACTIVE` or `DOWN`.
    pub state: String,
    /// What it was before, if that is logged too.
    pub before: Option<String>,
    pub ago_usec: u64,
}

/// One port of an HCA, as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PortStatus {
    /// The number of the port, counted from 1.
    pub port: PortNumber,
    /// What is expected of it.
    pub role: Role,
    /// Its port GUID.
    #[serde(rename = "port_guid")]
    pub guid: Option<Guid>,
    /// Its link layer.
    pub link_layer: LinkLayer,
    /// It has the other link layer than the port that is expected there by name.
    pub is_of_other_type: bool,
    /// The configuration expects an Ethernet port there.
    pub is_roce: bool,
    /// How its link is.
    #[serde(flatten)]
    pub link: Link,
    /// What of its link, and of its adapter's PCIe link, is below the configured minimum.
    pub degraded: Vec<Degraded>,
    /// The netdev of the port; `None` if it has none.
    pub netdev: Option<IfName>,
    /// How the netdev is set.
    pub netdev_state: Option<NetDevState>,
    /// The netdev's addresses.
    pub addresses: Vec<String>,
    /// The netdev's P_Key children.
    pub children: Vec<Child>,
    /// How far it is on the ladder, and what it lacks.
    pub ladder: Ladder,
    /// Its P_Key table, without empty entries; `null` if it was not read.
    pub pkeys: Option<Vec<PKeyEntry>>,
    /// Its GID table, if asked for.
    pub gids: Option<Vec<Gid>>,
    /// The last change of its link, of one that was named on this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_change: Option<LinkChange>,
}

/// Which rungs are reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ladder {
    /// The reached ones, lowest first.
    pub reached: Vec<Rung>,
    /// The first that is not.
    pub missing: Option<Rung>,
    /// Why, as far as the host can tell.
    #[serde(rename = "reason")]
    pub why: Option<String>,
}

/// A VF, and the netdev and RDMA device it has on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VfStatus {
    /// As the PF shows it.
    #[serde(flatten)]
    pub vf: Vf,
    /// Its RDMA device here.
    pub rdma: Option<RdmaName>,
    /// Its netdev here.
    pub netdev: Option<IfName>,
    /// What of it is in another network namespace; `null`: nothing.
    pub other_namespace: Option<Away>,
    /// Its ports here; none unless a driver of this host has it.
    pub ports: Vec<VfPortStatus>,
}

/// A port of a VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VfPortStatus {
    /// The number of the port, counted from 1.
    pub port: PortNumber,
    /// Its port GUID.
    #[serde(rename = "port_guid")]
    pub guid: Option<Guid>,
    /// How its link is.
    #[serde(flatten)]
    pub link: Link,
}

impl Ladder {
    /// These rungs in order; `reached` says which are there.
    pub fn of(rungs: &[Rung], reached: impl Fn(Rung) -> bool, why: Option<String>) -> Self {
        let (there, missing): (Vec<Rung>, Vec<Rung>) = rungs.iter().partition(|r| reached(**r));
        Self { reached: there, missing: missing.first().copied(), why }
    }

    /// The last rung before the first that is missing.
    pub fn highest(&self) -> Option<Rung> {
        match self.missing {
            Some(missing) => Rung::ALL.into_iter().take_while(|rung| *rung < missing).last(),
            None => Rung::ALL.last().copied(),
        }
    }

    fn text(&self) -> String {
        let reached: Vec<&str> = self.reached.iter().map(|r| r.word()).collect();
        let mut text = reached.join(" > ");
        if let Some(missing) = self.missing {
            text.push_str(&format!(" | missing {missing}"));
            if let Some(why) = self.why.as_ref().filter(|w| !w.is_empty()) {
                text.push_str(&format!(": {why}"));
            }
        }
        text
    }
}

impl Status {
    /// With the keys that every report has.
    pub fn told(&self) -> Report<&Self> {
        let mut findings = self.judgement.findings.clone();
        findings.extend(self.units.findings.iter().cloned());
        findings.extend(not_read(&self.problems));
        let Judgement { verdict, exit_code, .. } = self.judgement;
        Report::new(Kind::Status, verdict, findings, self).exiting(exit_code)
    }

    /// What can be named of it.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> =
            self.absent.iter().map(|absent| absent.expected.clone()).collect();
        names.extend(self.soft_roce.iter().map(|soft| soft.rxe.name.to_string()));
        for hca in &self.hcas {
            names.extend(hca.names());
            for vf in &hca.vfs {
                names.insert(vf.vf.pci.to_string());
                names.extend(vf.rdma.iter().map(ToString::to_string));
                names.extend(vf.netdev.iter().map(ToString::to_string));
            }
        }
        names
    }

    /// Keeps what was named: these adapters and VFs, and what has no function, by these names.
    /// Of a VF its PF is kept too, without its other VFs.
    pub fn keep(&mut self, named: &[Named], others: &[String]) {
        let mut objects: BTreeSet<Object> = others.iter().map(Object::from).collect();
        self.hcas.retain_mut(|hca| {
            let own: Vec<&Named> = named.iter().filter(|named| named.pci == hca.pci).collect();
            if own.is_empty() {
                hca.vfs.retain(|vf| named.iter().any(|named| named.pci == vf.vf.pci));
                let vfs = &hca.vfs;
                if let Some(planned) = &mut hca.planned {
                    planned.vfs.retain(|p| vfs.iter().any(|vf| vf.vf.index == p.index));
                }
            } else if own.iter().all(|named| !named.ports.is_empty()) {
                hca.ports.retain(|port| own.iter().any(|named| named.ports.contains(&port.port)));
            }
            let is_kept = !own.is_empty() || !hca.vfs.is_empty();
            if is_kept {
                objects.extend(hca.objects());
            }
            is_kept
        });
        self.absent.retain(|absent| others.contains(&absent.expected));
        self.soft_roce.retain(|soft| {
            let netdev = soft.rxe.netdev.as_ref().map(ToString::to_string);
            let is_kept = others.contains(&soft.rxe.name.to_string())
                || netdev.is_some_and(|netdev| others.contains(&netdev));
            objects.extend(is_kept.then(|| soft.rxe.object()));
            is_kept
        });
        let hcas = &self.hcas;
        self.subnet_managers.retain(|manager| {
            let is_of = |port: &PortStatus| port.guid == Some(manager.port_guid);
            let is_kept = hcas.iter().flat_map(|hca| &hca.ports).any(is_of);
            objects.extend(is_kept.then(|| manager.object()));
            is_kept
        });
        self.software_devices.clear();
        self.units.findings.clear();
        self.judgement = self.judgement.clone().only(|object| objects.contains(object));
    }

    /// What `ibprov status` shows people: whether the node is as it is meant to be and what
    /// is not, then a line for each port; with more `detail` all that is known of each. Where
    /// that is higher than the screen, each finding has its first step only, and if that is
    /// not enough the verdict stands at the end again.
    pub fn to_text(&self, screen: Screen, detail: Detail) -> String {
        let is_higher = |lines: &[String]| screen.rows.is_some_and(|rows| lines.len() >= rows);
        let mut lines = self.lines(screen, detail, usize::MAX);
        if is_higher(&lines) && matches!(detail, Detail::Problems | Detail::Ports) {
            lines = self.lines(screen, detail, 1);
        }
        if is_higher(&lines) {
            lines.extend(self.headline(screen));
        }
        screen::text(lines)
    }

    fn headline(&self, screen: Screen) -> Vec<String> {
        let tone = match self.judgement.verdict {
            Verdict::Ready | Verdict::NothingExpected => Tone::Good,
            Verdict::Exceptions => Tone::Warning,
            _ => Tone::Bad,
        };
        screen.painted(tone, "", &self.judgement.headline())
    }

    /// The findings, those of which `is_shown`, each with so many steps. What is to be done
    /// about several that follow one another stands below the last of them.
    fn findings(
        &self,
        screen: Screen,
        indent: &str,
        steps: usize,
        is_shown: fn(Severity) -> bool,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        let mut grouped = self.with_short_names().grouped();
        grouped.retain(|finding| is_shown(finding.severity));
        let mut grouped = grouped.iter().peekable();
        while let Some(finding) = grouped.next() {
            let tone = match finding.severity {
                Severity::Error => Tone::Bad,
                Severity::Warning | Severity::Info => Tone::Warning,
            };
            let names: Vec<String> = finding.objects.iter().map(ToString::to_string).collect();
            let subject = format!("{}{}", finding.noun(), few(&names));
            let text = format!("{}: {subject}: {}", finding.severity, finding.message);
            lines.extend(screen.painted(tone, indent, &text));
            if grouped.peek().is_none_or(|next| next.advice != finding.advice) {
                lines.extend(to_do(screen, indent, finding, steps));
            }
        }
        lines
    }

    /// The judgement, with ports called as in the table.
    pub fn with_short_names(&self) -> Judgement {
        let mut judgement = self.judgement.clone();
        for hca in &self.hcas {
            for port in &hca.ports {
                let (Some(label), Some(name)) = (hca.label(port), hca.name(port)) else { continue };
                let objects = judgement.findings.iter_mut().flat_map(|f| &mut f.objects);
                objects.filter(|object| **object == label).for_each(|o| *o = name.as_str().into());
            }
        }
        judgement
    }

    fn lines(&self, screen: Screen, detail: Detail, steps: usize) -> Vec<String> {
        let mut lines = self.headline(screen);
        lines.extend(self.findings(screen, "  ", steps, |severity| severity != Severity::Info));
        if matches!(detail, Detail::Ports | Detail::All) {
            lines.extend(screen.wrapped("", &self.head()));
        }
        for finding in &self.units.findings {
            let text = format!("{}: {}", finding.code.name(), finding.message);
            lines.extend(screen.wrapped("  ", &text));
            lines.extend(to_do(screen, "  ", finding, steps));
        }
        match self.udev.running {
            Some(true) => {}
            Some(false) => lines.push("udev: systemd-udevd is not running".to_owned()),
            None => lines.push("udev: not known: this copy has no /run/udev/control".to_owned()),
        }
        let table = table(self, screen, detail);
        if !table.is_empty() {
            lines.push(String::new());
            lines.extend(table);
        }
        if detail == Detail::Problems {
            return lines;
        }
        lines.extend(self.findings(screen, "", steps, |severity| severity == Severity::Info));
        if detail == Detail::All {
            lines.push(String::new());
            lines.push(format!("kernel {}", self.kernel));
            lines.push(self.modules());
        }
        if matches!(detail, Detail::Named | Detail::All) {
            for hca in &self.hcas {
                lines.push(String::new());
                let text = screen.page(&hca.lines().join("\n"));
                lines.extend(text.lines().map(str::to_owned));
            }
        } else {
            lines.extend(self.gids());
        }
        lines.extend(self.soft_roce_lines());
        if !self.subnet_managers.is_empty() {
            lines.push(String::new());
        }
        lines.extend(self.subnet_managers.iter().flat_map(|manager| {
            let unit = manager.unit.as_ref().map(|unit| format!(" ('{unit}')"));
            let (object, priority) = (manager.object(), manager.priority);
            let text = format!(
                "subnet manager: {object}, priority {priority}: {}{}",
                manager.message(),
                unit.unwrap_or_default()
            );
            screen.wrapped("", &text)
        }));
        let is_told = |name: &&RdmaName| self.soft_roce.iter().any(|soft| soft.rxe.name == **name);
        let others = self.software_devices.iter().filter(|name| !is_told(name));
        let others: Vec<&RdmaName> = others.collect();
        if !others.is_empty() {
            lines.extend([String::new(), format!("other RDMA devices: {}", listed(&others))]);
        }
        for problem in &self.problems {
            lines.extend(screen.wrapped("note: ", problem));
        }
        lines
    }

    fn modules(&self) -> String {
        let modules = self.modules.iter().map(|ModuleNow { name, state }| match state {
            ModuleState::Loaded => name.to_string(),
            ModuleState::Loading => format!("{name} (loading)"),
            ModuleState::Absent => format!("{name} (NOT LOADED)"),
        });
        format!("modules: {}", modules.collect::<Vec<_>>().join(", "))
    }

    /// The GID tables, where they were asked for.
    fn gids(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for hca in &self.hcas {
            for port in &hca.ports {
                let Some(gids) = port.gids.as_ref().filter(|gids| !gids.is_empty()) else {
                    continue;
                };
                let name =
                    hca.rdma.as_ref().map_or_else(|| hca.pci.to_string(), ToString::to_string);
                lines.extend([String::new(), format!("GIDs of {name}/{}", port.port)]);
                lines.extend(gids.iter().map(|gid| format!("  {}", gid_line(gid))));
            }
        }
        lines
    }

    /// The soft RoCE devices that are there; what is wrong with others stands above.
    fn soft_roce_lines(&self) -> Vec<String> {
        let is_there = |soft: &&SoftRoce| {
            matches!(soft.rxe.state, RxeState::Present | RxeState::NotConfigured)
        };
        let mut lines = Vec::new();
        for soft in self.soft_roce.iter().filter(is_there) {
            let how = match (&soft.rxe.state, &soft.rxe.reason) {
                (RxeState::NotConfigured, _) => "not in the configuration",
                (_, Some(_)) => "not ready",
                (_, None) => "ready",
            };
            lines.push(format!("soft RoCE: {}: {how}", soft.rxe.object()));
            let gids = soft.gids.iter().flatten();
            lines.extend(gids.map(|gid| format!("  {}", gid_line(gid))));
        }
        if !lines.is_empty() {
            lines.insert(0, String::new());
        }
        lines
    }

    fn head(&self) -> String {
        let enabled = if self.units.enabled { "enabled" } else { "NOT enabled" };
        let owner = match self.units.openibd {
            Owner::Ibprov => "ibprov's",
            Owner::Vendor => "the vendor's",
            Owner::Masked => "masked",
            Owner::Nobody => "not installed",
        };
        let last = self.last_boot.as_ref().map_or_else(
            || "boot has not run".to_owned(),
            |b| format!("last boot: {}, exit {}", b.verdict.word(), b.exit_code),
        );
        format!("ibprov: {enabled}; {last}; openibd.service: {owner}")
    }
}

/// The first `steps` of what to do about `finding`.
fn to_do(screen: Screen, indent: &str, finding: &Finding, steps: usize) -> Vec<String> {
    Advice::lines(finding.advice.iter().take(steps), &format!("{indent}  "), screen)
}

impl Hca {
    /// What it, its ports and their netdevs are called.
    pub fn names(&self) -> Vec<String> {
        let of_port = |port: &PortStatus| {
            let netdev = port.netdev.iter();
            let netdevs = netdev.chain(port.children.iter().map(|child| &child.name));
            let netdevs = netdevs.map(ToString::to_string);
            self.name(port).into_iter().chain(netdevs).collect::<Vec<_>>()
        };
        let rdma = self.rdma.iter().map(ToString::to_string);
        let names = [self.pci.to_string()].into_iter().chain(rdma);
        names.chain(self.ports.iter().flat_map(of_port)).collect()
    }

    /// What findings about it, its ports and its VFs call them.
    fn objects(&self) -> Vec<Object> {
        let mut objects = vec![self.pci.into()];
        if let Some(name) = &self.rdma {
            let device = Object::Device { name: name.clone(), function: self.pci };
            objects.extend([name.into(), device]);
        }
        for port in &self.ports {
            objects.extend(self.label(port));
            let children = port.children.iter().map(|child| &child.name);
            objects.extend(port.netdev.iter().chain(children).map(Object::from));
        }
        for vf in &self.vfs {
            objects.push(vf.vf.pci.into());
            objects.extend(vf.netdev.iter().map(Object::from));
            objects.extend(vf.ports.iter().filter_map(|port| vf.port_label(port)));
        }
        objects
    }

    /// How its port `port` is called in findings.
    fn label(&self, port: &PortStatus) -> Option<Object> {
        Some(Object::port_of(self.rdma.clone()?, port.port, self.pci))
    }

    /// How it is called in the table.
    fn name(&self, port: &PortStatus) -> Option<String> {
        Some(format!("{}/{}", self.rdma.as_ref()?, port.port))
    }

    fn lines(&self) -> Vec<String> {
        let name = self.rdma.as_ref().map_or("no RDMA device", RdmaName::as_str);
        let mut head = format!("{name}  {}  {}", self.pci, self.id);
        let mut add = |what: &str, value: Option<String>| {
            if let Some(value) = value {
                head.push_str(&format!("  {what}{value}"));
            }
        };
        add("", self.card.hca_type.as_deref().map(harmless));
        add("firmware ", self.card.firmware.as_deref().map(harmless));
        add("node GUID ", self.node_guid.map(|g| g.to_string()));
        add("driver ", self.driver.clone());
        let pcie = self.pcie.and_then(|link| Some(format!("{} {}", link.width?, link.speed?)));
        add("PCIe ", pcie);
        add("NUMA node ", self.card.numa_node.map(|node| node.to_string()));
        add("PCIe switch ", self.card.pcie_switch.map(|pci| pci.to_string()));
        let mut lines = vec![head];
        if let Some(description) = self.node_description.as_ref().filter(|d| !d.text.is_empty()) {
            lines.push(format!("  node description {:?}", description.text));
        }
        if let Some(reason) = &self.left_out {
            lines.push(format!("  not expected: {reason}"));
        }
        if self.ports.is_empty() && self.left_out.is_none() {
            lines.push(format!("  {}", self.ladder.text()));
        }
        for port in &self.ports {
            lines.extend(port.lines());
        }
        lines.extend(self.vfs.iter().map(VfStatus::line));
        lines.extend(self.history.iter().flat_map(|history| history.lines(self.pci)));
        lines
    }
}

impl History {
    fn lines(&self, pci: PciAddress) -> Vec<String> {
        let told = |told: &Told| format!("    {} ago: {}", duration(told.ago_usec), told.text);
        let older = self.of - self.last.len();
        let all = ToDo::run(format!("journalctl -k -b _KERNEL_DEVICE=+pci:{pci}"));
        let mut lines = vec![match (older, self.cut_off) {
            (0, false) => "  kernel log:".to_owned(),
            (_, false) => format!("  kernel log, the last of {} lines:", self.of),
            (_, true) => format!("  kernel log, cut off: older lines are shown by {all}"),
        }];
        lines.extend(self.last.iter().map(told));
        lines
    }
}

impl fmt::Display for LinkChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {} for {}", self.state, duration(self.ago_usec))?;
        self.before.iter().try_for_each(|before| write!(f, " ({before} before)"))
    }
}

impl PortStatus {
    /// It is an InfiniBand port, or somebody counts on it.
    fn counts(&self) -> bool {
        self.link_layer != LinkLayer::Ethernet || self.is_of_other_type || self.is_roce
    }

    fn lines(&self) -> Vec<String> {
        let unknown = || "?".to_owned();
        let link = &self.link;
        let layer = match self.link_layer {
            LinkLayer::InfiniBand => "InfiniBand",
            LinkLayer::Ethernet => "Ethernet",
            LinkLayer::Unknown => "link layer unknown",
        };
        let mut head = format!(
            "  port {}  {layer}  {}  {}  {}",
            self.port,
            link.state.map_or("?", LinkState::word),
            link.physical.map_or("?", PhysicalState::word),
            link.rate.as_ref().map_or_else(unknown, ToString::to_string),
        );
        if self.link_layer == LinkLayer::InfiniBand {
            let lid = |lid: Option<u32>| lid.map_or_else(|| "-".to_owned(), |l| l.to_string());
            head.push_str(&format!("  LID {}  SM LID {}", lid(link.lid), lid(link.sm_lid)));
        }
        if let Some(guid) = self.guid {
            head.push_str(&format!("  port GUID {guid}"));
        }
        if let Some(downed) = link.link_downed.filter(|downed| *downed > 0) {
            head.push_str(&format!("  link_downed {downed}"));
        }
        let mut lines = vec![head];
        lines.extend(self.link_change.iter().map(|change| format!("    {change}")));
        if let (Some(netdev), Some(state)) = (&self.netdev, &self.netdev_state) {
            let mtu = state.mtu.map_or_else(unknown, |m| m.to_string());
            let addresses = if self.addresses.is_empty() {
                "no address".to_owned()
            } else {
                self.addresses.join(" ")
            };
            // Only IPoIB has a mode.
            let mode = match self.link_layer {
                LinkLayer::Ethernet => String::new(),
                _ => format!("{}  ", state.mode.as_deref().unwrap_or("datagram")),
            };
            lines.push(format!("    {netdev}  {mode}mtu {mtu}  {}  {addresses}", up(state)));
        }
        if self.counts() {
            lines.push(format!("    {}", self.ladder.text()));
        }
        for child in &self.children {
            let pkey = child.pkey.map_or_else(unknown, |pkey| pkey.to_string());
            let mtu = child.state.mtu.map_or_else(unknown, |m| m.to_string());
            lines.push(format!(
                "    {}  P_Key {pkey}  {}  mtu {mtu}  {}",
                child.name,
                child.state.mode.clone().unwrap_or_else(|| "datagram".to_owned()),
                up(&child.state)
            ));
        }
        if let Some(pkeys) = &self.pkeys {
            let each = |entry: &PKeyEntry| format!("{} {}", entry.pkey, entry.membership);
            let each: Vec<String> = pkeys.iter().map(each).collect();
            let all = if each.is_empty() { "none".to_owned() } else { each.join(", ") };
            lines.push(format!("    P_Keys {all}"));
        }
        lines.extend(self.gids.iter().flatten().map(|gid| format!("    {}", gid_line(gid))));
        lines
    }
}

fn gid_line(gid: &Gid) -> String {
    let ipv4 = gid.ipv4.map(|a| format!("  {a}")).unwrap_or_default();
    let netdev = gid.netdev.as_ref().map(|n| format!("  {n}")).unwrap_or_default();
    format!("GID {:>3}  {:10}  {}{ipv4}{netdev}", gid.index, gid.kind.word(), gid.gid)
}

fn up(state: &NetDevState) -> String {
    let carrier = match state.carrier {
        Some(true) => "carrier",
        Some(false) => "no carrier",
        None => "carrier unknown",
    };
    let up = match state.admin_up {
        Some(true) => "up",
        Some(false) => "down",
        None => "up or down is unknown",
    };
    format!("{up}, {carrier}")
}

/// The words behind a VF of which something is not to be seen here.
fn elsewhere(what: Away) -> String {
    format!(", its {what} not in this network namespace")
}

impl VfStatus {
    fn line(&self) -> String {
        let text = |guid: Option<Guid>| guid.map_or_else(|| "?".to_owned(), |g| g.to_string());
        let vf = &self.vf;
        let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        format!(
            "  VF {:>3}  {}  {}  {}  {}  node GUID {}  port GUID {}  link state {}{}",
            vf.index,
            vf.pci,
            vf.driver.clone().unwrap_or_else(|| "no driver".to_owned()),
            or_none(self.rdma.as_ref().map(ToString::to_string)),
            or_none(self.netdev.as_ref().map(ToString::to_string)),
            text(vf.node_guid),
            text(vf.port_guid),
            vf.policy.map_or("?", Words::typed),
            self.other_namespace.map(elsewhere).unwrap_or_default(),
        ) + &self.ports.iter().map(VfPortStatus::text).collect::<String>()
    }

    /// How its port `port` is called in findings.
    fn port_label(&self, port: &VfPortStatus) -> Option<Object> {
        Some(Object::port_of(self.rdma.clone()?, port.port, self.vf.pci))
    }
}

impl VfPortStatus {
    fn text(&self) -> String {
        let Link { state, physical, lid, .. } = &self.link;
        format!(
            "  port {} {} {} LID {}",
            self.port,
            state.map_or("?", LinkState::word),
            physical.map_or("?", PhysicalState::word),
            lid.map_or_else(|| "-".to_owned(), |lid| lid.to_string()),
        )
    }
}
