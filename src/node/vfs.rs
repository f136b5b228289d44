//! What is judged of VFs, planned or not, and of GUIDs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Account, Node};
use crate::model::{
    Advice, Away, Code, Finding, PlannedPf, PortProgress, Severity, ToDo,
    hardware::{VfPortStatus, VfStatus},
    plan::Action,
};
use crate::names::{
    Guid, IB_DRIVERS, IsVf, LinkLayer, LinkState, MadPort, Object, PciAddress, Policy, RdmaName,
    VfIndex, VfName, vf_ranges,
};
use crate::observe::administered::alias_entries;
use crate::observe::{self, Backend, Look, PciFunction, Port, RdmaDevice, last_report};

impl Account<'_> {
    fn all_vfs(&self) -> impl Iterator<Item = (PciAddress, &VfStatus)> {
        self.vfs.iter().flat_map(|(pf, vfs)| vfs.iter().map(move |vf| (*pf, vf)))
    }

    fn plan(&self, pf: PciAddress) -> Option<&PlannedPf> {
        self.pfs.iter().find(|planned| planned.pci == Some(pf))
    }

    /// The VFs of `pf` are not as planned, and a run that is under way may make them so.
    pub(super) fn vfs_may_come(&self, pf: &PlannedPf) -> bool {
        let has_failed = pf.pci.is_some_and(|pci| self.last_runs.contains_key(&pci));
        let count = pf.count();
        count.good < count.of && pf.errors().is_empty() && !has_failed
    }

    pub(super) fn planned_vfs(&self, findings: &mut Vec<Finding>) {
        let survey = &self.node.survey;
        let is_booting = self.is_booting();
        for pf in &self.pfs {
            // That it does not answer is said of the adapter.
            let is_silent = |pci| survey.silent.contains_key(&pci) || survey.unread.contains(&pci);
            let is_open = pf.pci.is_some_and(is_silent) || is_booting && self.vfs_may_come(pf);
            let last_run = pf.pci.and_then(|pci| self.last_runs.get(&pci));
            findings.extend(if is_open {
                pf.errors()
            } else {
                pf.findings(last_run.map(String::as_str))
            });
        }
    }

    /// The ports of VFs that should be active: their PFs' are. What is passed on, is in another
    /// network namespace or is told elsewhere (a port that is expected, a VF without a GUID, with
    /// a policy of down or not as planned) is not among them.
    pub(super) fn vf_ports(&self, findings: &mut Vec<Finding>) {
        let (node, mut look) = (self.node, Look::new(self.node.root));
        for (pf, vf) in self.all_vfs() {
            let Some(function) = node.function(vf.pci) else { continue };
            let mut plan = self.plan(pf).into_iter().flat_map(|pf| &pf.vfs);
            let plan = plan.find(|planned| planned.index == vf.index);
            if node.ports.iter().any(|port| port.pci == Some(vf.pci))
                || is_zero(vf.port_guid)
                || plan.is_some_and(|vf| !matches!(vf.action, Action::Keep | Action::Refuse))
                || vf.other_namespace.is_some()
            {
                continue;
            }
            for (device, port) in function.ports().filter(|(_, port)| !is_zero(port.guid)) {
                let told = node.survey.port(vf.pci, &device.name, port.number);
                let policy = vf.policy.or(told.and_then(|told| told.policy));
                let state = match told.and_then(|told| told.link.state) {
                    _ if policy == Some(Policy::Down) => continue,
                    None | Some(LinkState::Active | LinkState::ActiveDefer) => continue,
                    Some(LinkState::Down) => "Down",
                    Some(LinkState::Init) => "Initializing",
                    Some(LinkState::Armed) => "Armed",
                    Some(LinkState::Nop | LinkState::Unknown) => "in an unknown state",
                };
                let Some(of_pf) = node.active_port(&mut look, pf, vf.pci, port) else { continue };
                // On mlx4 the GUID is an alias that the subnet manager grants.
                let (why, advice) = if function.driver.as_deref() == Some("mlx4_core") {
                    (
                        "has probably not granted the alias GUID of this VF",
                        Advice::look("see the log of the subnet manager"),
                    )
                } else {
                    (
                        "probably serves no virtual ports",
                        Advice::permanent(
                            "use a subnet manager with virtualization support: NVIDIA's OpenSM with `virt_enabled 2` in its opensm.conf, UFM, or a managed switch where it is enabled; the OpenSM of distributions has none",
                        ),
                    )
                };
                let message = format!(
                    "{state}, although the port of its PF is Active: the subnet manager {why}"
                );
                let look = format!("ask which subnet manager it is: sminfo {of_pf}");
                let object = Object::port_of(device.name.clone(), port.number, vf.pci);
                let finding = Finding::warning(Code::VfPortNotActive, message).about(object);
                findings.push(finding.advise([Advice::look(look), advice]));
            }
        }
    }

    /// VFs without a GUID that no plan can give: those that were passed through, and the second
    /// ports of those that a driver of this host has.
    pub(super) fn vf_guids(&self, findings: &mut Vec<Finding>) {
        let is_without = |port: &&PortProgress| {
            let function = port.pci.and_then(|pci| self.node.function(pci));
            function.filter(|f| f.is_vf() == IsVf::PassedThrough).is_some_and(|function| {
                let mut devices = function.rdma.iter();
                let device = devices.find(|device| Some(&device.name) == port.rdma.as_ref());
                is_zero(port.guid) || is_zero(device.and_then(|device| device.node_guid))
            })
        };
        for port in self.node.ports.iter().filter(is_without) {
            let message =
                "the GUID of this VF is 0: the hypervisor has set none before its driver was bound";
            let finding = Finding::error(Code::VfGuidZero, message).about(port.label());
            findings.push(finding.look([ToDo::with(
                "on the hypervisor, which sets the GUIDs of this VF",
                "ibprov status; ibprov plan",
            )]).now(["after it has set them, detach the VF from this machine and attach it again, or rebind it here: the driver reads its GUIDs when it is bound"]));
        }
        // Where the plan gives them GUIDs, or says that it does not, that is enough.
        let is_told = |pf| {
            self.plan(pf).is_some_and(|plan| {
                let mut wanted = plan.vfs.iter().filter_map(|vf| vf.wanted.as_ref());
                plan.refused.iter().any(|refused| refused.code == Code::VfGuidZero)
                    || wanted.any(|wanted| wanted.port2_guid.is_some())
            })
        };
        let untold = self.all_vfs().filter(|(pf, _)| !is_told(*pf));
        for function in untold.filter_map(|(_, vf)| self.node.function(vf.pci)) {
            let of_infiniband = |port: &Port| port.link_layer == LinkLayer::InfiniBand;
            for (device, port) in function.ports().skip(1) {
                if of_infiniband(port) && is_zero(port.guid) {
                    let message = "the port GUID of this port of a VF is 0";
                    let object =
                        Object::port_of(device.name.clone(), port.number, function.address);
                    findings.push(Finding::warning(Code::VfGuidZero, message).about(object));
                }
            }
        }
    }

    /// VFs of PFs for which nothing is planned: what is planned is judged by the plan.
    pub(super) fn unplanned_vfs(&self, findings: &mut Vec<Finding>) {
        for (pf, seen) in self.vfs.iter().filter(|(pf, _)| self.plan(**pf).is_none()) {
            self.unplanned(*pf, seen, findings);
        }
    }

    fn unplanned(&self, pf: PciAddress, seen: &[VfStatus], findings: &mut Vec<Finding>) {
        let named = |is_meant: &dyn Fn(&&VfStatus) -> bool| {
            let meant: Vec<VfIndex> = seen.iter().filter(is_meant).map(|vf| vf.index).collect();
            (!meant.is_empty()).then(|| vf_ranges(meant.into_iter()))
        };
        let last_run = if seen.is_empty() { None } else { self.node.last_run(pf) };
        let configured = last_run.and_then(|run| Some(run.get("vfs")?.as_array()?.len()));
        let configured = configured.unwrap_or_default();
        if let Some(vfs) = named(&|vf| usize::from(vf.index.get()) < configured) {
            let message = format!(
                "{vfs}: orphaned: ibprov configured them in this boot, and no [[pf]] plans them"
            );
            let finding = Finding::new(Code::VfOrphaned, Severity::Info, message).about(pf);
            findings.push(finding.now([format!(
                "to remove them: add a [[pf]] with vfs = 0, then `ibprov apply {pf}`"
            )]));
        }
        if let Some(vfs) = named(&|vf| self.node.has_zero_guid(vf)) {
            let message = format!("{vfs}: the port GUID is 0, and no [[pf]] sets one");
            let finding = Finding::warning(Code::VfGuidZero, message).about(pf);
            findings.push(finding.permanent(["plan GUIDs with a [[pf]]: man 5 ibprov.toml"]));
        }
        for VfStatus { pci, .. } in seen.iter().filter(|vf| vf.driver.is_none()) {
            let log = self.node.facts.functions.get(pci);
            if log.is_none_or(|log| log.probe_failed.is_none()) {
                continue;
            }
            let message = "the driver's probe of this VF failed";
            findings.push(
                Finding::warning(Code::VfProbeFailed, message)
                    .about(pci)
                    .look([ToDo::run(format!("journalctl -k -b | grep {pci}"))])
                    .now([ToDo::with(
                        "after the cause is corrected",
                        format!("echo {pci} > /sys/bus/pci/drivers_probe"),
                    )]),
            );
        }
        if let Some(vfs) = named(&|vf| vf.policy == Some(Policy::Down) && is_driven(vf)) {
            let message = format!(
                "{vfs}: the link state is down, so that their ports stay Down, and no [[pf]] sets one"
            );
            findings.push(
                Finding::warning(Code::VfPolicyDown, message)
                    .about(pf)
                    .now(["ip link set PF_NETDEV vf N state auto"])
                    .permanent(["plan link states with a [[pf]]: man 5 ibprov.toml"]),
            );
        }
    }

    /// Ports with the same GUID. Several functions of an adapter may show one port.
    pub(super) fn duplicate_guids(&self, findings: &mut Vec<Finding>) {
        let mut by_guid: BTreeMap<Guid, Vec<(Object, Option<Guid>)>> = BTreeMap::new();
        let mut add = |object, node, guid: Option<Guid>| {
            // Of all bits set a CNI plugin makes a VF that nobody has.
            if let Some(guid) = guid.filter(|guid| !guid.is_zero() && guid.value() != u64::MAX) {
                by_guid.entry(guid).or_default().push((object, node));
            }
        };
        let adapters = self.node.observed.functions.iter();
        for function in adapters.filter(|f| f.physfn.is_none() && !f.manages_nvswitch()) {
            for (device, port) in function.ports() {
                if port.link_layer == LinkLayer::InfiniBand {
                    let (name, number) = (device.name.clone(), port.number);
                    let object = Object::port_of(name, number, function.address);
                    add(object, device.node_guid, port.guid);
                }
            }
        }
        for (pf, vf) in self.all_vfs() {
            let shown = || self.node.function(vf.pci)?.ports().next()?.1.guid;
            let object = Object::Vf(VfName { pf, index: vf.index });
            add(object, None, vf.port_guid.or_else(shown));
        }
        for (guid, all) in by_guid {
            let is_one = match all.as_slice() {
                [(_, Some(node)), rest @ ..] => rest.iter().all(|(_, other)| *other == Some(*node)),
                all => all.len() < 2,
            };
            let message =
                format!("port GUID {guid}, which is that of another port of this host too");
            for (object, _) in all.into_iter().filter(|_| !is_one) {
                let is_planned = matches!(&object, Object::Vf(vf) if self.plan(vf.pf).is_some());
                let finding =
                    Finding::warning(Code::VfGuidDuplicate, message.clone()).about(object);
                findings.push(match is_planned {
                    true => finding.now([ToDo::run("ibprov apply")]),
                    false => finding.permanent([
                        "give each VF a GUID of its own with a [[pf]] (man 5 ibprov.toml), and rebind the VF",
                    ]),
                });
            }
        }
    }
}

impl Node<'_> {
    /// A GUID of the VF is 0, at the PF or as its driver has read it.
    fn has_zero_guid(&self, vf: &VfStatus) -> bool {
        let shows_zero = |function: &PciFunction| {
            let devices = function.rdma.iter().any(|device| is_zero(device.node_guid));
            devices || function.ports().next().is_some_and(|(_, port)| is_zero(port.guid))
        };
        is_zero(vf.port_guid) || self.function(vf.pci).is_some_and(shows_zero)
    }

    /// What the last run at each PF says stood in its way.
    pub(super) fn last_runs(&self, pfs: &[PlannedPf]) -> BTreeMap<PciAddress, String> {
        let of_pf = |pci| Some((pci, self.last_run(pci)?.get("reason")?.as_str()?.to_owned()));
        pfs.iter().filter_map(|pf| of_pf(pf.pci?)).collect()
    }

    /// The report of the last run at a PF.
    fn last_run(&self, pci: PciAddress) -> Option<Value> {
        last_report(self.root, &format!("pf/{pci}.json"))
    }

    /// The active port of a PF that a port of its VF shares.
    fn active_port(
        &self,
        look: &mut Look<'_>,
        pf: PciAddress,
        vf: PciAddress,
        port: &Port,
    ) -> Option<MadPort> {
        let function = self.function(pf)?;
        let number = match observe::pf::backend(look, pf) {
            Backend::Mlx4 { iov: Some(iov) } => {
                let at = usize::from(port.number.get()) - 1;
                alias_entries(look, &iov, vf).get(at)?.0
            }
            _ => port.number,
        };
        function.ports().find_map(|(device, own)| {
            let told = self.survey.port(pf, &device.name, own.number)?;
            let is_it = own.number == number && told.link.is_active();
            let device: Option<RdmaName> = Some(device.name.clone());
            is_it.then_some(MadPort { device, port: Some(own.number) })
        })
    }

    /// The VFs of a PF, with what they show on this host.
    pub(super) fn vfs(&self, look: &mut Look<'_>, pf: PciAddress) -> Vec<VfStatus> {
        let mut vfs = self.survey.vfs(look, pf);
        for vf in &mut vfs {
            let Some(function) = self.function(vf.pci) else { continue };
            let device = function.rdma.first();
            let netdev = device.and_then(|d| d.ports.iter().find_map(|p| p.netdev.as_ref()));
            vf.rdma = device.map(|device| device.name.clone());
            vf.netdev = netdev.map(|netdev| netdev.name.clone());
            vf.other_namespace = is_driven(vf).then(|| self.away(look, function)).flatten();
            let port = |(device, port): (&RdmaDevice, &Port)| {
                let told = self.survey.port(function.address, &device.name, port.number)?;
                Some(VfPortStatus { port: port.number, guid: port.guid, link: told.link.clone() })
            };
            vf.ports = function.ports().filter_map(port).collect();
        }
        vfs
    }

    /// What of a VF with a driver of this host is in another network namespace.
    fn away(&self, look: &mut Look<'_>, vf: &PciFunction) -> Option<Away> {
        // What was not answered is in a note.
        let counts = &self.survey.ipoib_netdevs;
        let may_have = |device: &RdmaName| counts.get(device).is_some_and(|n| *n != Some(0));
        observe::uses::away(look, &observe::pf::dir(vf.address), &vf.rdma, may_have)
    }
}

fn is_driven(vf: &VfStatus) -> bool {
    vf.driver.as_deref().is_some_and(|driver| IB_DRIVERS.contains(&driver))
}

fn is_zero(guid: Option<Guid>) -> bool {
    guid.is_some_and(Guid::is_zero)
}
