//! What the judgement of the node knows of its active ports, of their netdevs, and of what the
//! network stacks are configured to set up.

use super::node::Node;
use crate::ladder::minimum;
use crate::names::{LinkLayer, PKey};
use crate::observe::ipoib::Interface;
use crate::plan::fabric::{ActivePort, FabricNetdev, NeededBy, NetworkConfiguration};
use crate::plan::wanted;
use crate::report::PortProgress;

impl Node<'_> {
    /// The expected InfiniBand ports that the fabric uses, whatever their interfaces lack.
    pub(super) fn active_ports(&self) -> Vec<ActivePort<'_>> {
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
    pub(super) fn network(&self) -> NetworkConfiguration<'_> {
        NetworkConfiguration {
            asked: &self.asked,
            ipoib: self.interfaces.all.iter().map(|interface| &interface.name).collect(),
            taken: &self.interfaces.names,
        }
    }
}
