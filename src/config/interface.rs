//! `[[interface]]`: how IPoIB interfaces shall be set, and which ones.

use super::draft::Row;
use super::keys::{INTERFACE, interface as key};
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
    /// Its name at every boot.
    pub persistent_name: Option<IfName>,
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

/// The rules, in the order in which they apply.
pub(super) fn rules(merged: &Merged, problems: &mut Problems) -> Vec<InterfaceRule> {
    let mut rules: Vec<InterfaceRule> = Vec::new();
    let mut named: Vec<(IfName, Guid, &Place)> = Vec::new();
    for row in merged.tables(INTERFACE).iter().filter(|row| !row.broken) {
        let Some(rule) = rule(row, problems) else { continue };
        if let (Some((name, at)), InterfaceSelector::PortGuid(guid)) =
            (row.field::<IfName>(key::PERSISTENT_NAME), &rule.which)
        {
            let other = named.iter().find(|(n, g, _)| (*n == name) != (g == guid));
            match other {
                Some((_, other_guid, other_at)) => {
                    let what = if other_guid == guid {
                        "one port is given two persistent names"
                    } else {
                        "one persistent name is given to two ports"
                    };
                    let problem = Problem::new(what).at(at, "here").at(other_at, "and here");
                    problems.push(problem.help("keep one of the two"));
                }
                None => named.push((name, *guid, at)),
            }
        }
        rules.push(rule);
    }
    rules
}

fn rule(row: &Row, problems: &mut Problems) -> Option<InterfaceRule> {
    let which = selector(row, problems)?;
    let mode = row.field::<Mode>(key::MODE);
    let mtu = row.field::<i64>(key::MTU);
    if let (Some((mode, mode_at)), Some((mtu, mtu_at))) = (&mode, &mtu)
        && *mtu > i64::from(mode.largest_mtu())
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
        return None;
    }
    let name = row.field::<IfName>(key::PERSISTENT_NAME);
    if let (Some((_, at)), false) = (&name, matches!(which, InterfaceSelector::PortGuid(_))) {
        problems.push(
            Problem::new("a persistent name needs a port GUID")
                .at(at, "for which card?")
                .help("give port-guid in this [[interface]]: a name goes with one port"),
        );
        return None;
    }
    let number = |key: &str| row.field::<i64>(key).and_then(|(n, _)| u32::try_from(n).ok());
    let mut pkeys = row.list::<PKey>(key::PKEYS).map(|(list, _)| list).unwrap_or_default();
    pkeys.sort_unstable();
    pkeys.dedup();
    Some(InterfaceRule {
        which,
        mode: mode.map(|(mode, _)| mode),
        mtu: number(key::MTU),
        umcast: row.field(key::UMCAST).map(|(flag, _)| flag),
        pkeys,
        persistent_name: name.map(|(name, _)| name),
        receive_queue: number(key::RECEIVE_QUEUE),
        send_queue: number(key::SEND_QUEUE),
        origin: row.place.to_string(),
    })
}

fn selector(row: &Row, problems: &mut Problems) -> Option<InterfaceSelector> {
    let number = row.field::<i64>(key::PORT);
    let port = number.as_ref().and_then(|(n, _)| PortNumber::new(*n).ok());
    let name = row.field(key::NAME).map(|(p, at)| (InterfaceSelector::Name(p), at));
    let guid = row.field(key::PORT_GUID).map(|(g, at)| (InterfaceSelector::PortGuid(g), at));
    let pci = row.field(key::PCI).map(|(p, at)| (InterfaceSelector::Pci(p, port), at));
    let ways: Vec<(InterfaceSelector, &Place)> = [name, guid, pci].into_iter().flatten().collect();
    let (which, at) = match ways.as_slice() {
        [(which, at)] => (which.clone(), *at),
        [] => {
            problems.push(
                Problem::new("interface does not say which interface")
                    .at(&row.place, "names none")
                    .help("give exactly one of name, port-guid, pci; name = \"*\" means every one"),
            );
            return None;
        }
        several => {
            let start = Problem::new("interface names its interface in more than one way")
                .help("keep exactly one of name, port-guid, pci");
            let several = several.iter().zip(["one way", "and another", "and a third"]);
            problems.push(several.fold(start, |p, ((_, at), label)| p.at(at, label)));
            return None;
        }
    };
    match (&which, number) {
        (InterfaceSelector::PortGuid(guid), _) if guid.is_zero() => problems.push(
            Problem::new("bad value for port-guid")
                .at(at, "an all-zero GUID is what a port without a GUID shows"),
        ),
        (InterfaceSelector::Name(_) | InterfaceSelector::PortGuid(_), Some((_, port_at))) => {
            problems.push(
                Problem::new("port has no meaning without pci")
                    .at(port_at, "which port of an HCA")
                    .at(at, "does not name an HCA")
                    .help("leave port out"),
            );
        }
        _ => return Some(which),
    }
    None
}
