//! `[[interface]]`: how IPoIB interfaces shall be set, and which ones.

use super::draft::{Row, one_way};
use super::keys::{INTERFACE, Name, interface as key, partition};
use super::merge::Merged;
use super::problem::{Place, Problem, Problems};
use crate::names::{Guid, IfName, IfPattern, Mode, PKey, PciAddress, PortNumber};

/// One `[[interface]]`. What it does not say is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceRule {
    pub which: InterfaceSelector,
    pub mode: Option<Mode>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// User space may join multicast groups (`umcast`).
    pub umcast: Option<bool>,
    /// P_Key children to have, by P_Key.
    pub partitions: Vec<PartitionRule>,
    /// Its name at every boot; only where `which` is one port.
    pub name: Option<IfName>,
    /// The least that `recv_queue_size` of ib_ipoib should be.
    pub receive_queue: Option<u32>,
    /// The least that `send_queue_size` of ib_ipoib should be.
    pub send_queue: Option<u32>,
    /// It has an error: no rule is for the interfaces that it selects.
    pub is_withheld: bool,
    /// File and line, for messages.
    pub origin: String,
}

/// One `[[interface.partition]]`: a P_Key child. What it does not say is as its parent's
/// `[[interface]]` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionRule {
    pub pkey: PKey,
    /// Its name; `None`: the kernel's.
    pub name: Option<IfName>,
    pub mode: Option<Mode>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// User space may join multicast groups (`umcast`).
    pub umcast: Option<bool>,
}

/// Which interfaces a rule is for: interfaces of ports, and whatever P_Key children each
/// of them has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterfaceSelector {
    /// By the name it has when udev is done with it.
    Name(IfPattern),
    /// The interface of the port with this GUID.
    PortGuid(Guid),
    /// The interface of that function's port (all ports, if none is given).
    Pci(PciAddress, Option<PortNumber>),
}

impl InterfaceSelector {
    /// True if it can be no more than one interface of a port.
    fn is_one(&self) -> bool {
        match self {
            Self::Name(pattern) => pattern.is_name(),
            Self::PortGuid(_) | Self::Pci(..) => true,
        }
    }
}

/// The rules, in the order in which they apply; a row that matches several makes several.
pub(super) fn rules(merged: &Merged, problems: &mut Problems) -> Vec<InterfaceRule> {
    let mut rules: Vec<InterfaceRule> = Vec::new();
    let mut named: Vec<(IfName, Who, Place)> = Vec::new();
    for row in merged.all(INTERFACE).iter().filter(|row| row.is_left_out) {
        let whichs = selectors(row, &mut Problems::default()).into_iter();
        rules.extend(whichs.map(|(which, _)| InterfaceRule {
            name: None,
            is_withheld: true,
            ..rule(row, which, Vec::new())
        }));
    }
    for row in merged.tables(INTERFACE) {
        let whichs = selectors(row, problems);
        let partitions = partitions(row, problems);
        let of_one = matches!(whichs.as_slice(), [(which, _)] if which.is_one());
        for child in row.tables(key::PARTITION).iter().filter(|_| !of_one && !whichs.is_empty()) {
            if let Some((_, at)) = child.field(partition::NAME) {
                Problem::new("interface.partition.name is for one interface")
                    .at(at, "one name")
                    .at(&row.place, "and more than one interface, or a pattern")
                    .help("remove it: children are then named PARENT.8001")
                    .add_to(problems);
            }
        }
        mtu_fits(row, problems);
        let has_name = name_fits(row, &whichs, problems);
        for (which, _) in whichs {
            if let Some((name, at)) = row.field(key::NAME).filter(|_| has_name) {
                name_once(&mut named, name, (which.clone(), None), at, problems);
            }
            let children = row.tables(key::PARTITION).iter().filter(|_| of_one);
            for child in children {
                let (name, pkey) = (child.field(partition::NAME), child.field(partition::PKEY));
                if let (Some((name, at)), Some((pkey, _))) = (name, pkey) {
                    name_once(&mut named, name, (which.clone(), Some(pkey)), at, problems);
                }
            }
            rules.push(rule(row, which, partitions.clone()));
        }
    }
    rules
}

/// An interface of the configuration: that of a port, or the P_Key child of it.
type Who = (InterfaceSelector, Option<PKey>);

/// One name is for one interface, and one interface has one name.
fn name_once(
    named: &mut Vec<(IfName, Who, Place)>,
    name: IfName,
    who: Who,
    at: &Place,
    problems: &mut Problems,
) {
    let other = named.iter().find(|(n, w, _)| (*n == name) != (*w == who));
    match other {
        Some((_, other, other_at)) => {
            let what = if *other == who {
                "one interface has two names"
            } else {
                "two interfaces have the same name"
            };
            let problem = Problem::new(what).at(at, "here").at(other_at, "and here");
            problems.push(problem.help("keep one of the two"));
        }
        None => named.push((name, who, at.clone())),
    }
}

/// What the row says of `which`.
fn rule(row: &Row, which: InterfaceSelector, partitions: Vec<PartitionRule>) -> InterfaceRule {
    let number = |key: Name<i64>| row.value(key).and_then(|n| u32::try_from(n).ok());
    InterfaceRule {
        which,
        mode: row.value(key::MODE),
        mtu: number(key::MTU),
        umcast: row.value(key::UMCAST),
        partitions,
        name: row.value(key::NAME),
        receive_queue: number(key::RECEIVE_QUEUE),
        send_queue: number(key::SEND_QUEUE),
        is_withheld: false,
        origin: row.place.to_string(),
    }
}

/// False, and told, if the row has a name and matches more than one port.
fn name_fits(row: &Row, whichs: &[(InterfaceSelector, &Place)], problems: &mut Problems) -> bool {
    let mut good = true;
    if let Some((_, name_at)) = row.field(key::NAME) {
        let mut problem = |why: &str| {
            good = false;
            Problem::new("interface.name is for one port").at(name_at, why).help(
                "give match.port-guid, or match.pci (and match.port, if the adapter has several ports)",
            )
        };
        match whichs {
            [(InterfaceSelector::Name(_), at), ..] => {
                problems.push(problem("the name that is set").at(at, "the present name"));
            }
            [_, (_, second_at), ..] => {
                problems.push(problem("one name").at(second_at, "and more than one port"));
            }
            _ => {}
        }
    }
    good
}

/// The MTU fits the mode, of the interface and of its children.
fn mtu_fits(row: &Row, problems: &mut Problems) {
    let (mode, mtu) = (row.field(key::MODE), row.field(key::MTU));
    let children = row.tables(key::PARTITION).iter().filter_map(|child| {
        let own = (child.field(partition::MODE), child.field(partition::MTU));
        // What both have from the parent is told of that.
        (own.0.is_some() || own.1.is_some()).then(|| (own.0.or(mode), own.1.or(mtu)))
    });
    for (mode, mtu) in std::iter::once((mode, mtu)).chain(children) {
        one_mtu_fits(mode, mtu, problems);
    }
}

fn one_mtu_fits(mode: Option<(Mode, &Place)>, mtu: Option<(i64, &Place)>, problems: &mut Problems) {
    if let (Some((mode, mode_at)), Some((mtu, mtu_at))) = (mode, mtu)
        && mtu > i64::from(mode.largest_mtu(true))
    {
        let largest = mode.largest_mtu(true);
        Problem::new(format!("the MTU {mtu} is too large for {} mode", mode.word()))
                .at(mtu_at, format!("at most {largest} is possible"))
                .at(mode_at, "in this mode")
                .help(
                    "the maximum in datagram mode is 4092 (2044 on a link of 2048; 10236 on Omni-Path), and 65520 in connected mode",
                ).add_to(problems);
    }
}

/// The P_Key children of the row, by P_Key.
fn partitions(row: &Row, problems: &mut Problems) -> Vec<PartitionRule> {
    let mut rules: Vec<(PartitionRule, &Place)> = Vec::new();
    for child in row.tables(key::PARTITION) {
        if child.lacks(&[&partition::PKEY]) {
            Problem::new("interface.partition has no P_Key")
                .at(&child.place, "names none")
                .help("add, for example, `pkey = \"0x8001\"`")
                .add_to(problems);
        }
        let Some((pkey, at)) = child.field(partition::PKEY) else { continue };
        match rules.iter().find(|(other, _)| other.pkey == pkey) {
            Some((_, other_at)) => Problem::new(format!(
                "P_Key {pkey} is listed twice for one interface"
            ))
            .repeated(at, other_at)
            .help("keep one of the two; 0x0001 is 0x8001, since IPoIB is always a full member")
            .add_to(problems),
            None => {
                let mtu = child.field(partition::MTU);
                let rule = PartitionRule {
                    pkey,
                    name: child.value(partition::NAME),
                    mode: child.value(partition::MODE),
                    mtu: mtu.and_then(|(mtu, _)| u32::try_from(mtu).ok()),
                    umcast: child.value(partition::UMCAST),
                };
                rules.push((rule, at));
            }
        }
    }
    let mut rules: Vec<PartitionRule> = rules.into_iter().map(|(rule, _)| rule).collect();
    rules.sort_unstable_by_key(|rule| rule.pkey);
    rules
}

/// What the row matches; empty, and told, if that is none or said in two ways.
fn selectors<'a>(row: &'a Row, problems: &mut Problems) -> Vec<(InterfaceSelector, &'a Place)> {
    let number = row.field(key::MATCH_PORT);
    let port = number.as_ref().and_then(|(n, _)| PortNumber::new(*n).ok());
    if row.lacks(&[&key::MATCH_NAME, &key::MATCH_PORT_GUID, &key::MATCH_PCI]) {
        let name = row.field(key::NAME);
        let at = name.as_ref().map_or(&row.place, |(_, at)| *at);
        let label = if name.is_some() { "this is the name that is set" } else { "names none" };
        Problem::new("interface does not select an interface")
                .at(at, label)
                .help("give exactly one of match.name, match.port-guid, match.pci; match.name = \"*\" means every one").add_to(problems);
    }
    let ways = [
        row.way(key::MATCH_NAME, InterfaceSelector::Name),
        row.way(key::MATCH_PORT_GUID, InterfaceSelector::PortGuid),
        row.way(key::MATCH_PCI, |pci| InterfaceSelector::Pci(pci, port)),
    ];
    let whichs = one_way("interface selects its interface", ways, problems);
    if let (Some((_, port_at)), Some((which, at))) = (&number, whichs.first())
        && !matches!(which, InterfaceSelector::Pci(..))
    {
        Problem::new("match.port has no meaning without match.pci")
            .at(port_at, "which port of an adapter")
            .at(at, "does not name an adapter")
            .help("leave it out")
            .add_to(problems);
    }
    for (which, at) in &whichs {
        if matches!(which, InterfaceSelector::PortGuid(guid) if guid.is_zero()) {
            Problem::new("bad value for interface.match.port-guid")
                .at(at, "an all-zero GUID means that a port has no GUID")
                .add_to(problems);
        }
    }
    whichs
}
