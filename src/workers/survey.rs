//! What the HCAs of a host show that may keep its reader waiting: asked for by those
//! who show a host, of all HCAs at once.

use std::collections::BTreeMap;

use super::client::{Client, ask_each};
use super::request::{Answer, Request};
use crate::host::Root;
use crate::names::{PciAddress, PortNumber, RdmaName};
use crate::observe::administered::{Administers, administered};
use crate::observe::link::PortAnswer;
use crate::observe::{Look, pf};
use crate::report::hardware::Vf;

/// A port: its function, its RDMA device, its number.
pub type Port = (PciAddress, RdmaName, PortNumber);

/// What each of `ports` answered.
pub fn ports(root: &Root, ports: &[Port]) -> Vec<Option<PortAnswer>> {
    let mut clients: BTreeMap<PciAddress, Client<'_>> = BTreeMap::new();
    let mut requests: BTreeMap<PciAddress, Vec<Request>> = BTreeMap::new();
    for (pci, device, port) in ports {
        clients.entry(*pci).or_insert_with(|| Client::new(root));
        let request = Request::Port { pci: *pci, device: device.clone(), port: *port };
        requests.entry(*pci).or_default().push(request);
    }
    let asked = clients.iter_mut().zip(&requests).map(|((_, c), (_, r))| (c, r.as_slice()));
    let replies = ask_each(asked.collect());
    let answers: Vec<_> = requests.values().flatten().zip(replies.into_iter().flatten()).collect();
    let answer = |(pci, device, port): &Port| {
        let request = Request::Port { pci: *pci, device: device.clone(), port: *port };
        match &answers.iter().find(|(asked, _)| **asked == request)?.1 {
            Ok(Answer::Port(answer)) => Some(answer.clone()),
            _ => None,
        }
    };
    ports.iter().map(answer).collect()
}

/// The VFs of a PF, with what it administers for them.
pub fn vfs(look: &mut Look<'_>, pf: PciAddress) -> Vec<Vf> {
    let vfs = pf::addresses(look, pf);
    let question = Administers { pf, backend: pf::backend(look, pf), vfs: vfs.clone() };
    let told = if vfs.is_empty() { Ok(Vec::new()) } else { administered(look.root(), &[question]) };
    let mut told = told.unwrap_or_else(|e| {
        look.problems.insert(format!("VF GUIDs by netlink: {}", crate::host::answer(&e)));
        Vec::new()
    });
    let one = |(index, pci)| {
        let told = told.iter_mut().find(|told| told.vf.index == index);
        let admin = told.map(|told| {
            look.problems.extend(std::mem::take(&mut told.problems));
            std::mem::take(&mut told.admin)
        });
        let admin = admin.unwrap_or_default();
        Vf {
            index,
            pci,
            driver: pf::driver(look, pci),
            node_guid: admin.node_guid,
            port_guid: admin.port_guid,
            policy: admin.policy,
        }
    };
    vfs.into_iter().map(one).collect()
}
