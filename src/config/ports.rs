//! `[[port]]`: what is special about a port. Which ports are expected is `boot.ports`.

use super::draft::{Row, one_way};
use super::keys::{BOOT_IGNORE, PORT, port as key};
use super::merge::Merged;
use super::pf::{Pf, PfSelector, Placed};
use super::problem::{Place, Problem, Problems};
use super::{PortRow, RxeRow};
use crate::names::{
    LinkLayer, LinkMinimum, PKey, PortNumber, PortSelector, PortWait, RdmaName, is_given_by_kernel,
};

/// What the rows say, one for each adapter or port that they name, with its place. None may be a soft RoCE
/// device of `rxe`: those have no PCI function, and are expected without a `[[port]]`. Of the VFs
/// of an adapter, one row tells or one of `pfs`.
pub(super) fn rows(
    merged: &Merged,
    rxe: &[RxeRow],
    pfs: &[Placed<'_>],
    problems: &mut Problems,
) -> Vec<(PortRow, Place)> {
    let mut ports: Vec<(PortRow, Place)> = Vec::new();
    let ignored = merged.list(BOOT_IGNORE);
    for row in merged.all(PORT).iter().filter(|row| row.is_left_out) {
        for (mut port, place) in one(row, &mut Problems::default()) {
            port.withhold();
            let is_ignored = port.port.is_none() && ignored.iter().any(|(i, _)| *i == port.which);
            if !is_ignored && !ports.iter().any(|(other, _)| same(other, &port)) {
                ports.push((port, place));
            }
        }
    }
    for row in merged.tables(PORT) {
        for (port, place) in one(row, problems) {
            let is_named = |rxe: &&RxeRow| port.which == PortSelector::Rdma(rxe.name.clone());
            if let Some(rxe) = rxe.iter().find(is_named) {
                Problem::new(format!("port.rdma {} is a soft RoCE device", rxe.name))
                        .at(&place, "")
                        .help(format!(
                            "{} has it as [[rxe]], which is waited for and judged without a [[port]]: remove this one",
                            rxe.origin
                        )).add_to(problems);
                continue;
            }
            let has_plan = |pf: &&Placed<'_>| is_planned(&port, &pf.pf);
            if let (Some((_, at)), Some(pf)) =
                (row.field(key::VFS_EXPECTED), pfs.iter().find(has_plan))
            {
                Problem::new("port.vfs-expected is for VFs that another program creates")
                    .at(at, "the number of VFs of that program")
                    .at(pf.count.at, "ibprov creates the VFs of this PF itself")
                    .help("keep one of the two")
                    .add_to(problems);
            }
            let has_name = |(other, _): &&(PortRow, Place)| {
                port.rdma_name.is_some()
                    && other.rdma_name == port.rdma_name
                    && other.which != port.which
            };
            if let (Some((_, other)), Some(name)) = (ports.iter().find(has_name), &port.rdma_name) {
                Problem::new(format!("two RDMA devices would have the name {name}"))
                    .at(&place, "this adapter")
                    .at(other, "and this one")
                    .help("give each a name of its own")
                    .add_to(problems);
            }
            match ports.iter().find(|(other, _)| same(other, &port)) {
                Some((_, other)) => Problem::new("the same port is described twice")
                        .repeated(&place, other)
                        .help("keep one of the two; `port = []` in a file between them clears the list before it").add_to(problems),
                None => ports.push((port, place)),
            }
        }
    }
    ports
}

fn one(row: &Row, problems: &mut Problems) -> Vec<(PortRow, Place)> {
    if row.lacks(&[&key::PCI, &key::PORT_GUID, &key::RDMA]) {
        Problem::new("port does not name a port")
            .at(&row.place, "names no adapter and no port")
            .help("give exactly one of pci, port-guid, rdma")
            .add_to(problems);
    }
    let ways = [
        row.way(key::PCI, PortSelector::Pci),
        row.way(key::PORT_GUID, PortSelector::PortGuid),
        row.way(key::RDMA, PortSelector::Rdma),
    ];
    let named = one_way("port names its port", ways, problems);
    let numbers = row.each(key::PORT);
    let required = row.value(key::REQUIRED).unwrap_or(true);
    let wait = row.value(key::WAIT).unwrap_or(PortWait::Boot);
    let vfs_expected = row.value(key::VFS_EXPECTED).and_then(|vfs| usize::try_from(vfs).ok());
    let layer = row.field(key::LINK_LAYER);
    let of_type = row.field(key::TYPE);
    if let (Some((_, type_at)), Some((_, layer_at))) = (&of_type, &layer) {
        Problem::new("port.link-layer has no meaning beside port.type")
            .at(layer_at, "the link layer")
            .at(type_at, "already implies the link layer")
            .help("remove link-layer")
            .add_to(problems);
    }
    let port_type = of_type.as_ref().map(|(of_type, _)| *of_type);
    let link_layer = match (port_type, &layer) {
        (Some(of_type), _) => of_type.link_layer(),
        (None, Some((layer, _))) => *layer,
        (None, None) => LinkLayer::InfiniBand,
    };
    let minimum = LinkMinimum {
        rate: row.value(key::RATE),
        width: row.value(key::WIDTH),
        speed: row.value(key::SPEED),
        pcie_width: row.value(key::PCIE_WIDTH),
        pcie_speed: row.value(key::PCIE_SPEED),
        firmware: row.value(key::FIRMWARE),
    };
    let pkeys = pkeys(row, link_layer, problems);
    let names = rdma_names(row, &named, problems);
    let mut ports = Vec::new();
    for (number_of, (which, at)) in named.into_iter().enumerate() {
        match (&which, numbers.first()) {
            (PortSelector::PortGuid(guid), _) if guid.is_zero() => {
                Problem::new("bad value for port.port-guid")
                    .at(at, "an all-zero GUID means that a port has no GUID")
                    .add_to(problems);
            }
            (PortSelector::PortGuid(_), Some((_, number_at))) => {
                Problem::new("port.port has no meaning beside port.port-guid")
                    .at(number_at, "which port of an adapter")
                    .at(at, "is one port already")
                    .help("remove port")
                    .add_to(problems);
            }
            (PortSelector::PortGuid(_) | PortSelector::Rdma(_), _) if of_type.is_some() => {
                let problem = Problem::new("port.type needs port.pci")
                    .at(at, "a name that changes with the type")
                    .help("name the adapter with pci");
                let type_at = of_type.as_ref().map(|(_, place)| place);
                problems.push(type_at.into_iter().fold(problem, |p, at| p.at(at, "sets the type")));
            }
            (PortSelector::PortGuid(_), _) if link_layer == LinkLayer::Ethernet => {
                let problem = Problem::new("a port in Ethernet mode has no port GUID")
                    .at(at, "names an InfiniBand port")
                    .help("name the adapter with pci or rdma");
                let layer = layer.as_ref().map(|(_, place)| place);
                problems
                    .push(layer.into_iter().fold(problem, |p, at| p.at(at, "is in Ethernet mode")));
            }
            _ => {
                let whole = PortRow {
                    which,
                    rdma_name: names.get(number_of).cloned(),
                    port: None,
                    required,
                    wait,
                    vfs_expected,
                    link_layer,
                    port_type,
                    minimum,
                    pkeys: pkeys.clone(),
                    is_withheld: false,
                    origin: row.place.to_string(),
                };
                let of = |(n, (number, at)): (usize, &(i64, &Place))| {
                    let port = PortNumber::new(*number).ok();
                    // Name and VFs are the adapter's: one row has them.
                    let rdma_name = whole.rdma_name.clone().filter(|_| n == 0);
                    let vfs_expected = whole.vfs_expected.filter(|_| n == 0);
                    (PortRow { port, rdma_name, vfs_expected, ..whole.clone() }, (*at).clone())
                };
                match numbers.as_slice() {
                    [] | [_] => {
                        let port = numbers.first().and_then(|(n, _)| PortNumber::new(*n).ok());
                        ports.push((PortRow { port, ..whole }, at.clone()));
                    }
                    several => ports.extend(several.iter().enumerate().map(of)),
                }
            }
        }
    }
    ports
}

/// The names of the RDMA devices of the adapters in `named`, in the same order.
fn rdma_names(
    row: &Row,
    named: &[(PortSelector, &Place)],
    problems: &mut Problems,
) -> Vec<RdmaName> {
    let names = row.each(key::RDMA_NAME);
    let Some((_, first_at)) = names.first() else { return Vec::new() };
    if let Some((_, at)) = named.iter().find(|(which, _)| !matches!(which, PortSelector::Pci(_))) {
        Problem::new("port.rdma-name needs port.pci")
            .at(first_at, "names an RDMA device")
            .at(at, "does not name the slot of the adapter")
            .help("name the adapter with pci")
            .add_to(problems);
    }
    if !named.is_empty() && names.len() != named.len() {
        Problem::new(format!(
            "port.rdma-name has {} names for {} adapters",
            names.len(),
            named.len()
        ))
        .at(first_at, "the first name is that of the first adapter, and so on")
        .help("give as many names as there are addresses in pci")
        .add_to(problems);
    }
    for (name, at) in names.iter().filter(|(name, _)| is_given_by_kernel(name.as_str())) {
        Problem::new(format!("{name} is a name that the kernel gives by itself"))
            .at(at, "another adapter can have it first")
            .help("use another one, such as mlx5_rail0")
            .add_to(problems);
    }
    names.into_iter().map(|(name, _)| name).collect()
}

/// The partitions of which the port has to be a member, each once.
fn pkeys(row: &Row, link_layer: LinkLayer, problems: &mut Problems) -> Vec<PKey> {
    let mut all: Vec<(PKey, &Place)> = Vec::new();
    for (pkey, at) in row.each(key::PKEYS) {
        if link_layer == LinkLayer::Ethernet && all.is_empty() {
            Problem::new("port.pkeys has no meaning for a port in Ethernet mode")
                .at(at, "a partition of an InfiniBand fabric")
                .help("remove pkeys")
                .add_to(problems);
        }
        match all.iter().find(|(other, _)| *other == pkey) {
            Some((_, other_at)) => {
                Problem::new(format!("P_Key {pkey} is listed twice for one port"))
                    .repeated(at, other_at)
                    .help("keep one of the two; 0x0001 is 0x8001, since full membership is meant")
                    .add_to(problems);
            }
            None => all.push((pkey, at)),
        }
    }
    all.into_iter().map(|(pkey, _)| pkey).collect()
}

/// True if `pf` names the adapter of `port` in the same way.
fn is_planned(port: &PortRow, pf: &Pf) -> bool {
    match (&port.which, &pf.which) {
        (PortSelector::Pci(port), PfSelector::Pci(pf)) => port == pf,
        (PortSelector::PortGuid(port), PfSelector::PortGuid(pf)) => port == pf,
        (PortSelector::Rdma(port), PfSelector::Rdma(pf)) => port == pf,
        _ => false,
    }
}

/// True if one port could be meant by both.
fn same(a: &PortRow, b: &PortRow) -> bool {
    a.which == b.which && (a.port.is_none() || b.port.is_none() || a.port == b.port)
}
