//! What active ports and their netdevs lack of the fabric: membership of partitions, carrier, and
//! the netdevs that the network configuration means.

use super::{Account, Node};
use crate::ladder::minimum;
use crate::model::{
    Advice, Code, Finding, NetDevState, PKeyEntry, PortProgress, Severity, ToDo, node::PortCount,
    stack::ConfiguredNetdev,
};
use crate::names::{IfName, LinkLayer, PKey, PKeyLack, TablePKey, is_ipoib_name, sh};
use crate::observe::ipoib::Interface;
use crate::plan::wanted;

/// An expected InfiniBand port that is active.
struct ActivePort<'a> {
    port: &'a PortProgress,
    /// Its P_Key table; `None` where that was not read.
    pkeys: Option<&'a [PKeyEntry]>,
    /// The partitions of which it has to be a full member.
    needed: Vec<(PKey, NeededBy<'a>)>,
    /// Its netdev and the P_Key children of that.
    netdevs: Vec<FabricNetdev<'a>>,
}

/// What needs a port to be a member of a partition.
#[derive(Clone, PartialEq, Eq, strum::Display)]
enum NeededBy<'a> {
    /// The `[[port]]` at this place.
    #[strum(to_string = "the [[port]] at {0}")]
    Row(&'a str),
    #[strum(to_string = "{0}")]
    Netdev(&'a IfName),
    /// An `[[interface.partition]]` of this netdev, which is still to be created.
    #[strum(to_string = "the [[interface.partition]] of {0}")]
    Partition(&'a IfName),
}

/// A netdev of an active port.
struct FabricNetdev<'a> {
    name: &'a IfName,
    pkey: Option<PKey>,
    state: NetDevState,
    /// The network stack that is configured to set it up.
    claim: Option<&'a ConfiguredNetdev>,
}

impl FabricNetdev<'_> {
    fn lacks_carrier(&self) -> bool {
        self.state.admin_up == Some(true) && self.state.carrier == Some(false)
    }
}

impl Node<'_> {
    fn active<'a>(&'a self, port: &'a PortProgress) -> ActivePort<'a> {
        let all = &self.interfaces.all;
        let own = port.netdev.as_ref().and_then(|name| all.iter().find(|i| i.name == *name));
        let of_own = |i: &&Interface| i.parent.is_some() && i.parent == own.map(|o| o.ifindex);
        let children: Vec<&Interface> = all.iter().filter(of_own).collect();
        let place = port.place();
        let pkeys = place.and_then(|(pci, device, port)| self.survey.pkeys(pci, device, port));
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
        let netdevs: Vec<FabricNetdev<'_>> = netdevs.collect();
        // The netdev of a port is in the partition of the first entry of the table, whatever the
        // membership (`ipoib_parent_init()`, drivers/infiniband/ulp/ipoib/ipoib_main.c). That one
        // is no full member says nothing against it as long as it has carrier.
        let dark = netdevs.iter().filter(|netdev| netdev.lacks_carrier());
        needed.extend(dark.filter_map(|dark| Some((dark.pkey?, NeededBy::Netdev(dark.name)))));
        ActivePort { port, pkeys, needed, netdevs }
    }
}

impl ActivePort<'_> {
    fn judge(&self, findings: &mut Vec<Finding>) {
        let severity = if self.port.optional { Severity::Info } else { Severity::Warning };
        let is_asked = self.needed.iter().any(|(_, by)| matches!(by, NeededBy::Row(_)));
        if is_asked && self.pkeys.is_none() {
            let message = "P_Keys not judged: the P_Key table was not read";
            let finding = Finding::new(Code::PortNotJudged, Severity::Info, message);
            findings.push(finding.about(self.port.label()));
        }
        let mut needed: Vec<(PKey, Vec<&NeededBy<'_>>)> = Vec::new();
        for (pkey, by) in &self.needed {
            match needed.iter_mut().find(|(other, _)| other == pkey) {
                Some((_, all)) if all.contains(&by) => {}
                Some((_, all)) => all.push(by),
                None => needed.push((*pkey, vec![by])),
            }
        }
        for (pkey, by) in needed {
            let Some(lack) = self.lack(pkey) else { continue };
            let by: Vec<String> = by.iter().map(ToString::to_string).collect();
            let message = format!("{lack}; needed by {}", by.join(", "));
            let advice = Advice::full_membership(pkey, self.port.guid);
            let finding = Finding::new(Code::PkeyMissing, severity, message);
            findings.push(finding.about(self.port.label()).advise([advice]));
        }
        for netdev in &self.netdevs {
            if let Some((message, advice)) = self.not_online(netdev) {
                let finding = Finding::new(Code::InterfaceNotOnline, severity, message);
                findings.push(finding.about(netdev.name).advise(advice));
            }
        }
    }

    /// What the port lacks of full membership; `None` if nothing, or if its table was not read.
    fn lack(&self, pkey: PKey) -> Option<PKeyLack> {
        let table: Vec<TablePKey> = self.pkeys?.iter().map(|entry| entry.pkey).collect();
        pkey.lack_in(&table)
    }

    /// Why the fabric does not use a netdev that is meant to be used, and what to do.
    fn not_online(&self, netdev: &FabricNetdev<'_>) -> Option<(String, Vec<Advice>)> {
        if netdev.lacks_carrier() {
            let port = self.port.mad_port();
            let look = || {
                vec![
                    Advice::look(ToDo::multicast_joins(netdev.name)),
                    Advice::look(ToDo::at(&port, format!("sminfo {port}"))),
                ]
            };
            // What to do about a partition stands at the port.
            return Some(match netdev.pkey.and_then(|pkey| self.lack(pkey)) {
                Some(lack) if lack.is_limited => {
                    (format!("up without carrier, probably because {lack}"), look())
                }
                Some(lack) => (format!("up without carrier, because {lack}"), Vec::new()),
                None => (
                    "up without carrier: IPoIB has not joined its broadcast group".to_owned(),
                    look(),
                ),
            });
        }
        let asked = netdev.claim.filter(|_| netdev.state.admin_up == Some(false))?;
        let message =
            format!("down, and {} is configured to set it up ({})", asked.unit, asked.file);
        let look = [
            format!("ibprov iface {} --dry-run", sh(netdev.name.as_str())),
            format!("journalctl -b -u {}", sh(&asked.unit)),
        ];
        Some((message, look.map(|command| Advice::look(ToDo::run(command))).to_vec()))
    }
}

impl Account<'_> {
    /// What the expected InfiniBand ports lack that the fabric uses, whatever their interfaces
    /// lack.
    pub(super) fn fabric(&self, findings: &mut Vec<Finding>) {
        for port in &self.node.ports {
            let is_active = self.node.answer(port).is_some_and(|answer| answer.link.is_active());
            if is_active && port.link_layer == Some(LinkLayer::InfiniBand) {
                self.node.active(port).judge(findings);
            }
        }
    }

    /// The names of IPoIB netdevs that network stacks are configured to set up and that no netdev
    /// has, nor one that is still to come. A network stack creates P_Key children and aliases of a
    /// netdev that is there.
    pub(super) fn unmatched_names(&self, findings: &mut Vec<Finding>) {
        let ports = PortCount::sum(&self.of_ports());
        let vfs_lack = self.pfs.iter().map(|pf| pf.count()).any(|vfs| vfs.good != vfs.of);
        if ports.of == 0 || ports.good != ports.of || vfs_lack {
            return;
        }
        let interfaces = &self.node.interfaces;
        let is_taken = |name: &str| interfaces.names.iter().any(|taken| taken == name);
        let here: Vec<&str> = interfaces.all.iter().map(|i| i.name.as_str()).collect();
        let here = if here.is_empty() { "none".to_owned() } else { here.join(", ") };
        let before = findings.len();
        for ConfiguredNetdev { unit, netdev, file } in &self.node.asked {
            let parent = netdev.split(['.', ':']).next().unwrap_or_default();
            let mut own = findings.iter().skip(before);
            let is_told = own.any(|finding| finding.objects == [netdev.into()]);
            let is_name = is_ipoib_name(netdev) && !netdev.contains(['*', '?', '[']);
            if !is_name || is_told || is_taken(netdev) || is_taken(parent) {
                continue;
            }
            let message = format!(
                "no interface has this name, and {unit} is configured to set it up ({file}); IPoIB interfaces: {here}"
            );
            let finding = Finding::warning(Code::IfcfgMismatch, message).about(netdev);
            let remedy = format!("correct the name in {file}, or remove the file");
            findings.push(finding.look([ToDo::run("ibprov status -v")]).permanent([remedy]));
        }
    }
}
