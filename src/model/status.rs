//! `ibprov status`: one screen for what `ibstat`, `ibdev2netdev`, `ip link`
//! and `systemctl` say together.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    Degraded, Finding, Gid, Judgement, Kind, Link, NetDevState, NotExpected, PKeyEntry, PcieLink,
    PlannedPf, Report, RxeReport, Verdict,
    hardware::{Card, NodeDescription, VfStatus},
    not_read,
    subnet_manager::SubnetManagerReport,
};
use crate::names::{
    Guid, IfName, LinkLayer, ModuleName, ModuleState, Moment, Object, PKey, PciAddress, PortNumber,
    RdmaName, Rung,
};

/// An adapter that was named, or ports of it; or a VF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub pci: PciAddress,
    /// Its ports that are meant.
    pub ports: Vec<PortNumber>,
}

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
    #[serde(flatten)]
    pub rxe: RxeReport,
    /// Its GID table, if asked for.
    pub gids: Option<Vec<Gid>>,
}

/// A configured module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ModuleNow {
    pub name: ModuleName,
    pub state: ModuleState,
}

/// How far udev is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Udev {
    /// systemd-udevd can be reached (`/run/udev/control`); `null` of a copy without it.
    pub running: Option<bool>,
    /// No event is queued or being worked on (`/run/udev/queue`, the file
    /// that `udevadm settle` watches).
    pub settled: bool,
    /// The devices whose processed event was heard. A device's record under
    /// `/run/udev/data` would not do: it is written before the event's module
    /// is loaded, the event is sent after it.
    #[serde(skip)]
    pub heard: BTreeSet<String>,
}

impl Udev {
    /// True if udev has done for this device what it was going to do, loading
    /// its driver too.
    pub fn is_done_with(&self, sysname: &str) -> bool {
        self.settled || self.heard.contains(sysname)
    }
}

/// How the last boot ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LastBoot {
    /// How it ended, as in the report of the boot.
    pub verdict: Verdict,
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
    pub name: IfName,
    /// Its P_Key.
    pub pkey: Option<PKey>,
    #[serde(flatten)]
    pub state: NetDevState,
}

/// A PCI function that is a candidate, or was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hca {
    pub pci: PciAddress,
    /// Vendor and device, `15b3:101b`.
    pub id: String,
    /// The driver bound to it.
    pub driver: Option<String>,
    pub rdma: Option<RdmaName>,
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
    pub usec: Moment,
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
    #[serde(rename = "port_guid")]
    pub guid: Option<Guid>,
    pub link_layer: LinkLayer,
    /// It has the other link layer than the port that is expected there by name.
    pub is_of_other_type: bool,
    /// The configuration expects an Ethernet port there.
    pub is_roce: bool,
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
}

impl Status {
    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let mut findings = self.judgement.findings.clone();
        findings.extend(self.units.findings.iter().cloned());
        findings.extend(not_read(&self.problems));
        Report::new(Kind::Status, self.judgement.verdict, findings, self)
    }

    /// What can be named of it.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> =
            self.absent.iter().map(|absent| absent.expected.clone()).collect();
        names.extend(self.soft_roce.iter().map(|soft| soft.rxe.name.to_string()));
        for hca in &self.hcas {
            names.extend(hca.names());
            for vf in &hca.vfs {
                names.insert(vf.pci.to_string());
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
                hca.vfs.retain(|vf| named.iter().any(|named| named.pci == vf.pci));
                let vfs = &hca.vfs;
                if let Some(planned) = &mut hca.planned {
                    planned.vfs.retain(|p| vfs.iter().any(|vf| vf.index == p.index));
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
            objects.push(vf.pci.into());
            objects.extend(vf.netdev.iter().map(Object::from));
            objects.extend(vf.ports.iter().filter_map(|port| vf.port_label(port)));
        }
        objects
    }

    /// How its port `port` is called in findings.
    pub fn label(&self, port: &PortStatus) -> Option<Object> {
        Some(Object::port_of(self.rdma.clone()?, port.port, self.pci))
    }

    /// How it is called in the table.
    pub fn name(&self, port: &PortStatus) -> Option<String> {
        Some(format!("{}/{}", self.rdma.as_ref()?, port.port))
    }
}
