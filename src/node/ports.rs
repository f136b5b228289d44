//! The ports of the node, as its judgement and `status` take them: those that the fabric uses,
//! with their netdevs, and those of VFs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Node;
use super::fabric::{ActivePort, FabricNetdev, NeededBy, NetworkConfiguration, VfPort};
use crate::host::state;
use crate::ladder::minimum;
use crate::names::{
    Guid, IB_DRIVERS, IsVf, LinkLayer, MadPort, Object, PKey, PciAddress, Policy, RdmaName, VfName,
};
use crate::observe::ipoib::Interface;
use crate::observe::{self, Look, PciFunction, Port, RdmaDevice};
use crate::plan::wanted;
use crate::report::hardware::{Link, Vf};
use crate::report::plan::PlannedPf;
use crate::report::{self, Away, PortProgress};

impl Node<'_> {
    /// The expected InfiniBand ports that the fabric uses, whatever their interfaces lack.
    pub fn active_ports(&self) -> Vec<ActivePort<'_>> {
        let is_active = |port: &&PortProgress| {
            let link = match (port.pci, &port.rdma, port.port) {
                (Some(pci), Some(device), Some(number)) => self.survey.port(pci, device, number),
                _ => None,
            };
            port.link_layer == Some(LinkLayer::InfiniBand)
                && link.is_some_and(|answer| answer.link.is_active())
        };
        self.ports.iter().filter(is_active).map(|port| self.active(port)).collect()
    }

    fn active<'a>(&'a self, port: &'a PortProgress) -> ActivePort<'a> {
        let all = &self.interfaces.all;
        let own = port.netdev.as_ref().and_then(|name| all.iter().find(|i| i.name == *name));
        let of_own = |i: &&Interface| i.parent.is_some() && i.parent == own.map(|o| o.ifindex);
        let children: Vec<&Interface> = all.iter().filter(of_own).collect();
        let pkeys = match (port.pci, &port.rdma, port.port) {
            (Some(pci), Some(device), Some(number)) => self.survey.pkeys(pci, device, number),
            _ => None,
        };
        let rows = minimum::pkeys(self.config, port).into_iter();
        let mut needed: Vec<(PKey, NeededBy<'_>)> =
            rows.map(|(pkey, origin)| (pkey, NeededBy::Row(origin))).collect();
        needed.extend(children.iter().filter_map(|c| Some((c.pkey?, NeededBy::Netdev(&c.name)))));
        if let Some(own) = own {
            let wanted = wanted(&self.config.interfaces, own, &self.interfaces.stack_children);
            let pkeys = wanted.partitions.into_iter().map(|child| child.pkey);
            let to_come = pkeys.filter(|pkey| children.iter().all(|c| c.pkey != Some(*pkey)));
            needed.extend(to_come.map(|pkey| (pkey, NeededBy::Partition(&own.name))));
        }
        let netdevs = own.into_iter().chain(children).map(|interface| FabricNetdev {
            name: &interface.name,
            // One of a tree may not have been copied as a whole.
            pkey: interface.pkey.or_else(|| match interface.parent {
                None => Some(pkeys?.iter().find(|entry| entry.index == 0)?.pkey.full()),
                Some(_) => None,
            }),
            state: self.netdev(&interface.name),
            claim: self.asked.iter().find(|asked| asked.netdev == interface.name.as_str()),
        });
        ActivePort { port, pkeys, needed, netdevs: netdevs.collect() }
    }

    /// What the network stacks are configured to set up, beside what there is.
    pub fn network(&self) -> NetworkConfiguration<'_> {
        NetworkConfiguration {
            asked: &self.asked,
            ipoib: self.interfaces.all.iter().map(|interface| &interface.name).collect(),
            taken: &self.interfaces.names,
        }
    }

    /// The ports of VFs that should be active: their PFs' are. What is passed on, is in another
    /// network namespace or is told elsewhere (a port that is expected, a VF without a GUID or
    /// with a policy of down) is not among them.
    pub fn vf_ports(&self, vfs: &[(PciAddress, Vec<Vf>)], look: &mut Look<'_>) -> Vec<VfPort> {
        let mut found = Vec::new();
        for (pf, vf) in vfs.iter().flat_map(|(pf, vfs)| vfs.iter().map(move |vf| (*pf, vf))) {
            let Some(function) = self.function(vf.pci) else { continue };
            let is_expected = self.ports.iter().any(|port| port.pci == Some(vf.pci));
            if is_expected || is_zero(vf.port_guid) || self.away(look, vf, function).is_some() {
                continue;
            }
            for (device, port) in ports(function).filter(|(_, port)| !is_zero(port.guid)) {
                let told = self.survey.port(vf.pci, &device.name, port.number);
                let state = told.and_then(|told| told.link.state);
                let policy = vf.policy.or(told.and_then(|told| told.policy));
                let (Some(state), false) = (state, policy == Some(Policy::Down)) else { continue };
                let Some(of_pf) = self.active_port(pf, port) else { continue };
                found.push(VfPort {
                    object: Object::port_of(device.name.clone(), port.number, vf.pci),
                    vf: VfName { pf, index: vf.index },
                    state,
                    pf: of_pf,
                    has_alias: function.driver.as_deref() == Some("mlx4_core"),
                });
            }
        }
        found
    }

    /// The expected ports that are VFs of the hypervisor's, which have no GUID.
    pub fn without_guid(&self) -> Vec<Object> {
        let of = |port: &&PortProgress| {
            let Some(function) = port.pci.and_then(|pci| self.function(pci)) else { return false };
            let device =
                function.rdma.iter().find(|device| Some(&device.name) == port.rdma.as_ref());
            let node = device.and_then(|device| device.node_guid);
            function.is_vf() == IsVf::PassedThrough && (is_zero(port.guid) || is_zero(node))
        };
        self.ports.iter().filter(of).map(PortProgress::label).collect()
    }

    /// The VFs with a GUID of 0, at their PF or as their driver has read it.
    pub fn zero_vfs(&self, vfs: &[(PciAddress, Vec<Vf>)]) -> BTreeSet<PciAddress> {
        let shows_zero = |function: &PciFunction| {
            let devices = function.rdma.iter().any(|device| is_zero(device.node_guid));
            devices || ports(function).next().is_some_and(|(_, port)| is_zero(port.guid))
        };
        let all = vfs.iter().flat_map(|(_, vfs)| vfs);
        let zero =
            all.filter(|vf| is_zero(vf.port_guid) || self.function(vf.pci).is_some_and(shows_zero));
        zero.map(|vf| vf.pci).collect()
    }

    /// The ports with a GUID that no plan gives, those of adapters with their node GUIDs.
    pub fn guids(
        &self,
        vfs: &[(PciAddress, Vec<Vf>)],
        pfs: &[PlannedPf],
    ) -> Vec<(Object, Option<Guid>, Guid)> {
        let adapters = self.observed.functions.iter();
        let adapters = adapters.filter(|f| f.physfn.is_none() && !f.manages_nvswitch());
        let own = adapters.flat_map(|f| ports(f).map(move |(device, port)| (f, device, port)));
        let own = own.filter(|(_, _, port)| port.link_layer == LinkLayer::InfiniBand);
        let own = own.filter_map(|(f, device, port)| {
            let name = Object::port_of(device.name.clone(), port.number, f.address);
            Some((name, device.node_guid, port.guid?))
        });
        let is_planned = |pf| pfs.iter().any(|planned| planned.pci == Some(pf));
        let of_vf = |(pf, vf): (PciAddress, &Vf)| {
            let shown = || self.function(vf.pci).and_then(|f| ports(f).next()?.1.guid);
            let guid = vf.port_guid.or_else(shown)?;
            Some((Object::Vf(VfName { pf, index: vf.index }), None, guid))
        };
        let unplanned = vfs.iter().filter(|(pf, _)| !is_planned(*pf));
        let of_vfs = unplanned.flat_map(|(pf, vfs)| vfs.iter().map(move |vf| (*pf, vf)));
        let all = own.chain(of_vfs.filter_map(of_vf));
        // Of all bits set a CNI plugin makes a VF that nobody has.
        all.filter(|(_, _, guid)| !guid.is_zero() && guid.value() != u64::MAX).collect()
    }

    /// The ports of VFs that a driver of this host has, beyond the first of each, without a GUID.
    pub fn second_ports(&self, vfs: &[(PciAddress, Vec<Vf>)]) -> Vec<Object> {
        let all = vfs.iter().flat_map(|(_, vfs)| vfs);
        let functions = all.filter_map(|vf| self.function(vf.pci));
        let of = |function: &PciFunction| -> Vec<Object> {
            let lacking = ports(function)
                .skip(1)
                .filter(|(_, port)| port.link_layer == LinkLayer::InfiniBand && is_zero(port.guid));
            let label = |(device, port): (&RdmaDevice, &Port)| {
                Object::port_of(device.name.clone(), port.number, function.address)
            };
            lacking.map(label).collect()
        };
        functions.flat_map(of).collect()
    }

    /// What the last run at each PF says stood in its way.
    pub fn last_runs(&self, pfs: &[PlannedPf]) -> BTreeMap<PciAddress, String> {
        let of_pf = |pci| Some((pci, self.last_run(pci)?.get("reason")?.as_str()?.to_owned()));
        pfs.iter().filter_map(|pf| of_pf(pf.pci?)).collect()
    }

    /// How many VFs the last run at each of these PFs has configured.
    pub fn configured(&self, vfs: &[(PciAddress, Vec<Vf>)]) -> BTreeMap<PciAddress, usize> {
        let with_vfs = vfs.iter().filter(|(_, vfs)| !vfs.is_empty());
        with_vfs
            .filter_map(|(pf, _)| Some((*pf, self.last_run(*pf)?.get("vfs")?.as_array()?.len())))
            .collect()
    }

    /// The report of the last run at a PF.
    fn last_run(&self, pci: PciAddress) -> Option<Value> {
        let path = format!("{}/pf/{pci}.json", state::RUN_DIR);
        // What is wrong with the report is a finding of check.
        let text = self.root.text(&path, 16 << 20).ok()?;
        report::read(&text).ok()
    }

    /// The active port of a PF that a port of its VF shares.
    fn active_port(&self, pf: PciAddress, port: &Port) -> Option<MadPort> {
        let function = self.function(pf)?;
        ports(function).find_map(|(device, own)| {
            let told = self.survey.port(pf, &device.name, own.number)?;
            let is_it = own.number == port.number && told.link.is_active();
            let device: Option<RdmaName> = Some(device.name.clone());
            is_it.then_some(MadPort { device, port: Some(own.number) })
        })
    }

    /// What of a VF of this host is in another network namespace.
    pub fn away(&self, look: &mut Look<'_>, vf: &Vf, function: &PciFunction) -> Option<Away> {
        let driven = vf.driver.as_deref().is_some_and(|driver| IB_DRIVERS.contains(&driver));
        // What was not answered is in a note.
        let counts = &self.survey.ipoib_netdevs;
        let may_have = |device: &RdmaName| counts.get(device).is_some_and(|n| *n != Some(0));
        let dir = observe::pf::dir(vf.pci);
        driven.then(|| observe::uses::away(look, &dir, &function.rdma, may_have)).flatten()
    }

    /// The links of a VF's ports that this host shows.
    pub fn vf_links(&self, function: &PciFunction) -> Vec<(Port, Link)> {
        let link = |(device, port): (&RdmaDevice, &Port)| {
            let told = self.survey.port(function.address, &device.name, port.number)?;
            Some((port.clone(), told.link.clone()))
        };
        ports(function).filter_map(link).collect()
    }
}

fn is_zero(guid: Option<Guid>) -> bool {
    guid.is_some_and(Guid::is_zero)
}

fn ports(function: &PciFunction) -> impl Iterator<Item = (&RdmaDevice, &Port)> {
    function.rdma.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)))
}
