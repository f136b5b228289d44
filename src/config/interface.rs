//! `[[interface]]`: how IPoIB interfaces shall be set, and which ones.

use super::draft::Row;
use super::keys::{INTERFACE, interface as key, partition};
use super::merge::Merged;
use super::problem::{Place, Problem, Problems};
use crate::names::{Guid, IfName, IfPattern, Mode, PKey, PciAddress, PortNumber};

/// One `[[interface]]`. What it does not say is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceRule {
    /// Which interfaces.
    pub which: InterfaceSelector,
    /// Transport mode.
    pub mode: Option<Mode>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// User space may join multicast groups (`umcast`).
    pub umcast: Option<bool>,
    /// P_Key children to have.
    pub pkeys: Vec<PKey>,
    /// Its name at every boot; only where `which` is one port.
    pub name: Option<IfName>,
    /// The least that `recv_queue_size` of ib_ipoib should be.
    pub receive_queue: Option<u32>,
    /// The least that `send_queue_size` of ib_ipoib should be.
    pub send_queue: Option<u32>,
    /// File and line, for messages.
    pub origin: String,
}

/// Which interfaces a rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterfaceSelector {
    /// By the name it has when udev is done with it.
    Name(IfPattern),
    /// The interface of the port with this GUID, and its P_Key children.
    PortGuid(Guid),
    /// The interface of that function's port (all ports, if none is given),
    /// and its P_Key children.
    Pci(PciAddress, Option<PortNumber>),
}

/// The rules, in the order in which they apply; a row that matches several makes several.
pub(super) fn rules(merged: &Merged, problems: &mut Problems) -> Vec<InterfaceRule> {
    let mut rules: Vec<InterfaceRule> = Vec::new();
    let mut named: Vec<(IfName, InterfaceSelector, Place)> = Vec::new();
    for row in merged.tables(INTERFACE) {
        let whichs = selectors(row, problems);
        let pkeys = partitions(row, problems);
        mtu_fits(row, problems);
        let has_name = name_fits(row, &whichs, problems);
        for (which, _) in whichs {
            if let Some((name, at)) = row.field::<IfName>(key::NAME).filter(|_| has_name) {
                let other = named.iter().find(|(n, w, _)| (*n == name) != (*w == which));
                match other {
                    Some((_, other, other_at)) => {
                        let what = if *other == which {
                            "one port is given two names"
                        } else {
                            "one name is given to two ports"
                        };
                        let problem = Problem::new(what).at(at, "here").at(other_at, "and here");
                        problems.push(problem.help("keep one of the two"));
                    }
                    None => named.push((name, which.clone(), at.clone())),
                }
            }
            rules.push(rule(row, which, pkeys.clone()));
        }
    }
    rules
}

/// What the row says of `which`.
fn rule(row: &Row, which: InterfaceSelector, pkeys: Vec<PKey>) -> InterfaceRule {
    let number = |key: &str| row.field::<i64>(key).and_then(|(n, _)| u32::try_from(n).ok());
    InterfaceRule {
        which,
        mode: row.field(key::MODE).map(|(mode, _)| mode),
        mtu: number(key::MTU),
        umcast: row.field(key::UMCAST).map(|(flag, _)| flag),
        pkeys,
        name: row.field(key::NAME).map(|(name, _)| name),
        receive_queue: number(key::RECEIVE_QUEUE),
        send_queue: number(key::SEND_QUEUE),
        origin: row.place.to_string(),
    }
}

/// False, and told, if the row has a name and matches more than one port.
fn name_fits(row: &Row, whichs: &[(InterfaceSelector, &Place)], problems: &mut Problems) -> bool {
    let mut good = true;
    if let Some((_, name_at)) = row.field::<IfName>(key::NAME) {
        let mut problem = |why: &str| {
            good = false;
            Problem::new("interface.name is for one port").at(name_at, why).help(
                "give match.port-guid, or match.pci (and match.port, if the adapter has several ports)",
            )
        };
        match whichs {
            [(InterfaceSelector::Name(_), at), ..] => {
                problems.push(problem("the name that it gets").at(at, "the name that it has"));
            }
            [_, (_, second_at), ..] => {
                problems.push(problem("one name").at(second_at, "and more than one port"));
            }
            _ => {}
        }
    }
    good
}

fn mtu_fits(row: &Row, problems: &mut Problems) {
    if let (Some((mode, mode_at)), Some((mtu, mtu_at))) =
        (row.field::<Mode>(key::MODE), row.field::<i64>(key::MTU))
        && mtu > i64::from(mode.largest_mtu())
    {
        let largest = mode.largest_mtu();
        problems.push(
            Problem::new(format!("an MTU of {mtu} is too large for {} mode", mode.word()))
                .at(mtu_at, format!("at most {largest} is possible"))
                .at(mode_at, "in this mode")
                .help(
                    "datagram mode has 4092 at most (2044 on a link of 2048), connected mode 65520",
                ),
        );
    }
}

/// The P_Key children of the row, by P_Key.
fn partitions(row: &Row, problems: &mut Problems) -> Vec<PKey> {
    let mut pkeys: Vec<(PKey, &Place)> = Vec::new();
    for child in row.tables(key::PARTITION) {
        if child.lacks(&[partition::PKEY]) {
            problems.push(
                Problem::new("interface.partition does not say which P_Key")
                    .at(&child.place, "names none")
                    .help("add `pkey = \"0x8001\"`, say"),
            );
        }
        let Some((pkey, at)) = child.field::<PKey>(partition::PKEY) else { continue };
        match pkeys.iter().find(|(other, _)| *other == pkey) {
            Some((_, other_at)) => problems.push(
                Problem::new(format!("P_Key {pkey} is listed twice for one interface"))
                    .at(at, "here")
                    .at(other_at, "and first here")
                    .help("keep one of the two; 0x0001 is 0x8001, since IPoIB is always a full member"),
            ),
            None => pkeys.push((pkey, at)),
        }
    }
    let mut pkeys: Vec<PKey> = pkeys.into_iter().map(|(pkey, _)| pkey).collect();
    pkeys.sort_unstable();
    pkeys
}

/// What the row matches; empty, and told, if that is none or said in two ways.
fn selectors<'a>(row: &'a Row, problems: &mut Problems) -> Vec<(InterfaceSelector, &'a Place)> {
    let number = row.field::<i64>(key::MATCH_PORT);
    let port = number.as_ref().and_then(|(n, _)| PortNumber::new(*n).ok());
    let names = row.each::<IfPattern>(key::MATCH_NAME).into_iter();
    let names: Vec<_> = names.map(|(p, at)| (InterfaceSelector::Name(p), at)).collect();
    let guids = row.each::<Guid>(key::MATCH_PORT_GUID).into_iter();
    let guids: Vec<_> = guids.map(|(g, at)| (InterfaceSelector::PortGuid(g), at)).collect();
    let pcis = row.each::<PciAddress>(key::MATCH_PCI).into_iter();
    let pcis: Vec<_> = pcis.map(|(p, at)| (InterfaceSelector::Pci(p, port), at)).collect();
    let ways: Vec<_> = [names, guids, pcis].into_iter().filter(|way| !way.is_empty()).collect();
    if row.lacks(&[key::MATCH_NAME, key::MATCH_PORT_GUID, key::MATCH_PCI]) {
        let name = row.field::<IfName>(key::NAME);
        let at = name.as_ref().map_or(&row.place, |(_, at)| *at);
        let label = if name.is_some() { "this is the name that it gets" } else { "names none" };
        problems.push(
            Problem::new("interface does not say which interface")
                .at(at, label)
                .help("give exactly one of match.name, match.port-guid, match.pci; match.name = \"*\" means every one"),
        );
    }
    if ways.len() > 1 {
        let start = Problem::new("interface names its interface in more than one way")
            .help("keep exactly one of match.name, match.port-guid, match.pci");
        let firsts = ways.iter().filter_map(|way| way.first());
        let labels = firsts.zip(["one way", "and another", "and a third"]);
        problems.push(labels.fold(start, |p, ((_, at), label)| p.at(at, label)));
        return Vec::new();
    }
    let whichs = ways.into_iter().next().unwrap_or_default();
    if let (Some((_, port_at)), Some((which, at))) = (&number, whichs.first())
        && !matches!(which, InterfaceSelector::Pci(..))
    {
        problems.push(
            Problem::new("match.port has no meaning without match.pci")
                .at(port_at, "which port of an adapter")
                .at(at, "does not name an adapter")
                .help("leave it out"),
        );
    }
    for (which, at) in &whichs {
        if matches!(which, InterfaceSelector::PortGuid(guid) if guid.is_zero()) {
            problems.push(
                Problem::new("bad value for interface.match.port-guid")
                    .at(at, "an all-zero GUID is what a port without a GUID shows"),
            );
        }
    }
    whichs
}
