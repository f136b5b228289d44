//! What the judgement of the node knows of its active ports, of their netdevs, and of what the
//! network stacks are configured to set up.

use crate::config::Config;
use crate::host::Root;
use crate::ladder::minimum;
use crate::names::{LinkLayer, PKey};
use crate::observe::ipoib::{Interface, Interfaces};
use crate::observe::link;
use crate::plan::fabric::{ActivePort, FabricNetdev, NeededBy, NetworkConfiguration};
use crate::plan::wanted;
use crate::report::PortProgress;
use crate::report::stack::Asked;
use crate::workers::survey::Survey;

/// What was looked at.
pub(super) struct Seen<'a> {
    pub(super) root: &'a Root,
    pub(super) config: &'a Config,
    pub(super) survey: &'a Survey,
    pub(super) interfaces: &'a Interfaces,
    /// What the network stacks of this boot are configured to set up.
    pub(super) asked: &'a [Asked],
}

/// Those of the expected `ports` that are InfiniBand and that the fabric uses, whatever their
/// interfaces lack.
pub(super) fn active_ports<'a>(seen: &Seen<'a>, ports: &'a [PortProgress]) -> Vec<ActivePort<'a>> {
    let is_active = |port: &&PortProgress| {
        let link = match (port.pci, &port.rdma, port.port) {
            (Some(pci), Some(device), Some(number)) => seen.survey.port(pci, device, number),
            _ => None,
        };
        port.link_layer == Some(LinkLayer::InfiniBand)
            && link.is_some_and(|answer| answer.link.is_active())
    };
    ports.iter().filter(is_active).map(|port| active_port(seen, port)).collect()
}

fn active_port<'a>(seen: &Seen<'a>, port: &'a PortProgress) -> ActivePort<'a> {
    let all = &seen.interfaces.all;
    let own = port.netdev.as_ref().and_then(|name| all.iter().find(|i| i.name == *name));
    let children = all.iter().filter(|i| i.parent.is_some() && i.parent == own.map(|o| o.ifindex));
    let children: Vec<&Interface> = children.collect();
    let pkeys = match (port.pci, &port.rdma, port.port) {
        (Some(pci), Some(device), Some(number)) => seen.survey.pkeys(pci, device, number),
        _ => None,
    };
    let rows = minimum::pkeys(seen.config, port).into_iter();
    let mut needed: Vec<(PKey, NeededBy<'_>)> =
        rows.map(|(pkey, origin)| (pkey, NeededBy::Row(origin))).collect();
    needed.extend(children.iter().filter_map(|c| Some((c.pkey?, NeededBy::Netdev(&c.name)))));
    if let Some(own) = own {
        let wanted = wanted(&seen.config.interfaces, own, &seen.interfaces.stack_children);
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
        state: {
            let carrier = seen.survey.carriers.get(&interface.name).copied();
            link::netdev(seen.root, &interface.name, carrier)
        },
        claim: seen.asked.iter().find(|asked| asked.netdev == interface.name.as_str()),
    });
    ActivePort { port, pkeys, needed, netdevs: netdevs.collect() }
}

/// What the network stacks are configured to set up, beside what there is.
pub(super) fn network<'a>(seen: &Seen<'a>) -> NetworkConfiguration<'a> {
    NetworkConfiguration {
        asked: seen.asked,
        ipoib: seen.interfaces.all.iter().map(|interface| &interface.name).collect(),
        taken: &seen.interfaces.names,
    }
}
