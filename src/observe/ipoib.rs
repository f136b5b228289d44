//! IPoIB interfaces as they are set, P_Key children too.
//!
//! Reads sysfs only, and there nothing that takes the RTNL lock, which a sick
//! driver can hold for ever. What sysfs has no file for (the mode of a child
//! made by netlink) is left open; a child process can be asked for it.

use std::collections::BTreeMap;

use nix::libc::{ARPHRD_INFINIBAND, IFF_UP};

use super::last_report::last_report;
use super::pf;
use super::rdma::port_guid_of;
use super::{Look, interface_manager};
use crate::host::{Root, links, state};
pub use crate::model::iface::Interface;
use crate::model::{IfaceReport, StackName, StackSetting, Use};
use crate::names::{IfName, PKey, PortNumber};

impl Interface {
    /// Learn which of `names` are alternative ones of it, or of its parent.
    pub fn read_altnames(&mut self, root: &Root, names: &[IfName]) {
        let is_its = |name: &&IfName| {
            let own = links::own_name(root, name);
            own != **name && own == *self.parent_name.as_ref().unwrap_or(&self.name)
        };
        self.altnames = names.iter().filter(is_its).cloned().collect();
    }
}

#[cfg(test)]
impl Interface {
    /// The netdev of the first port of an adapter, down, with what a driver gives it.
    pub(crate) fn ib0() -> Self {
        Self {
            name: "ib0".parse().expect("name"),
            altnames: Vec::new(),
            ifindex: 3,
            parent: None,
            parent_name: None,
            pci: "0000:4b:00.0".parse().ok(),
            port: PortNumber::new(1).ok(),
            guid: "b859:9f03:0012:a480".parse().ok(),
            pkey: PKey::new(0xffff),
            can_connect: true,
            omni_path: false,
            mode: Some(crate::names::Mode::Datagram),
            mtu: Some(2044),
            umcast: Some(false),
            up: false,
        }
    }
}

/// All that the settings of interfaces are judged by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interfaces {
    pub all: Vec<Interface>,
    /// All names that are taken.
    pub names: Vec<String>,
    /// What runs of `ibprov iface` have left, by index.
    pub outcomes: BTreeMap<u32, IfaceReport>,
    /// Those that MLNX_OFED's agent is at work on, or may still begin with: what they
    /// show may not last.
    pub unsettled: Vec<IfName>,
    /// The P_Key children that network stacks create; [`Interfaces::look`] has none,
    /// `crate::stacks::interfaces()` has them.
    pub stack_children: Vec<StackChild>,
    /// By index, what the files of network stacks that run say of interfaces which show
    /// other settings than their outcomes say were made; filled as `stack_children`.
    pub written: BTreeMap<u32, Vec<(StackName, StackSetting)>>,
    /// By index, what uses interfaces whose mode or MTU another run would change; none before
    /// `crate::apply::in_use` has asked.
    pub uses: BTreeMap<u32, Vec<Use>>,
}

/// A P_Key child that a network stack of this boot creates itself, and would not set up if
/// another program had created it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackChild {
    /// The index of its parent.
    pub parent: u32,
    pub pkey: PKey,
    pub stack: StackName,
    /// The file that has it do so.
    pub file: String,
}

impl Interfaces {
    /// Look at all of them. No netlink: its requests wait for a lock that a sick
    /// driver can hold.
    pub fn look(root: &Root) -> Self {
        let all = interfaces(&mut Look::new(root));
        let outcomes = all.iter().filter_map(|i| Some((i.ifindex, outcome(root, i.ifindex)?)));
        let outcomes: BTreeMap<u32, IfaceReport> = outcomes.collect();
        let mut unsettled = interface_manager::at_work(root, all.iter().map(|i| &i.name));
        // Its job may be queued still, which only systemd could tell. A run of `iface` has
        // waited for that before it wrote its outcome, or says that it was in vain.
        if interface_manager::armed(root).is_some() {
            let has_ended = |o: &IfaceReport| !o.mlnx_interface_mgr_pending;
            let to_come = all.iter().filter(|i| !outcomes.get(&i.ifindex).is_some_and(has_ended));
            unsettled.extend(to_come.map(|i| i.name.clone()));
        }
        let names = root.list("/sys/class/net").unwrap_or_default();
        Self { all, unsettled, names, outcomes, ..Self::default() }
    }

    /// What an earlier run has left of `interface`.
    pub fn before(&self, interface: &Interface) -> Option<&IfaceReport> {
        self.outcomes.get(&interface.ifindex)
    }

    /// What the files of stacks say of `interface` ([`Self::written`]).
    pub fn written_of(&self, interface: &Interface) -> &[(StackName, StackSetting)] {
        self.written.get(&interface.ifindex).map_or(&[][..], Vec::as_slice)
    }
}

/// What an earlier run has written of the interface with this index.
pub fn outcome(root: &Root, ifindex: u32) -> Option<IfaceReport> {
    let outcome = last_report::<IfaceReport>(root, &outcome_file(ifindex));
    outcome.filter(|outcome| outcome.ifindex == ifindex)
}

/// Where the outcome of an interface is, below [`state::RUN_DIR`].
pub fn outcome_file(ifindex: u32) -> String {
    format!("{}/{ifindex}.json", state::PORTS)
}

/// What sort of interface a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sort {
    Ipoib(Box<Interface>),
    /// Another kind: a bond of IPoIB interfaces has their hardware type too.
    Other(String),
}

const NET: &str = "/sys/class/net";
/// IPOIB_FLAGS_RC (`drivers/infiniband/ulp/ipoib/ipoib.h`).
const CONNECTED: u8 = 0x80;

/// All IPoIB interfaces, by name; of P_Key children the port is that of their
/// parent.
pub fn interfaces(look: &mut Look<'_>) -> Vec<Interface> {
    let mut all = Vec::new();
    for entry in look.list(NET) {
        // Other interfaces may have any name.
        let Ok(name) = entry.parse::<IfName>() else { continue };
        if let Some(Sort::Ipoib(interface)) = sort(look, &name) {
            all.push(*interface);
        }
    }
    let ports: Vec<_> =
        all.iter().map(|i| (i.ifindex, i.name.clone(), i.pci, i.port, i.omni_path)).collect();
    for child in &mut all {
        let of = ports.iter().find(|(index, ..)| Some(*index) == child.parent);
        if let Some((_, name, pci, port, omni_path)) = of {
            (child.pci, child.port, child.omni_path) = (*pci, *port, *omni_path);
            child.parent_name = Some(name.clone());
        }
    }
    all
}

/// Give a P_Key child the port of its parent, and its name.
pub fn give_port(look: &mut Look<'_>, child: &mut Interface) {
    let Some(parent) = child.parent else { return };
    let name = if look.root.is_live() {
        links::name_of(parent)
    } else {
        let names = look.list(NET).into_iter().filter_map(|name| name.parse::<IfName>().ok());
        let names: Vec<IfName> = names.collect();
        names.into_iter().find(|n| number(look, &format!("{NET}/{n}"), "ifindex") == Some(parent))
    };
    if let Some(Sort::Ipoib(parent)) = name.and_then(|name| sort(look, &name)) {
        (child.pci, child.port) = (parent.pci, parent.port);
        child.omni_path = parent.omni_path;
        child.parent_name = Some(parent.name);
    }
}

/// The sort of the interface `name`; `None` if it is not there.
pub fn sort(look: &mut Look<'_>, name: &IfName) -> Option<Sort> {
    let dir = format!("{NET}/{name}");
    let ifindex = number(look, &dir, "ifindex")?;
    let hardware = number(look, &dir, "type")?;
    if hardware != u32::from(ARPHRD_INFINIBAND) {
        return Some(Sort::Other(format!("an interface of hardware type {hardware}")));
    }
    let uevent = look.attribute(&format!("{dir}/uevent")).unwrap_or_default();
    if let Some(kind) = uevent.lines().find_map(|l| l.strip_prefix("DEVTYPE=")) {
        return Some(Sort::Other(format!("a {kind}")));
    }
    let address = bytes(look, &format!("{dir}/address"));
    let iflink = number(look, &dir, "iflink");
    let parent = iflink.filter(|link| *link != ifindex && *link != 0);
    let pci = look.link_name(&format!("{dir}/device")).and_then(|t| t.parse().ok());
    let dev_port = number(look, &dir, "dev_port").map(i64::from);
    let mode = look.attribute(&format!("{dir}/mode"));
    let flags = flags(look, &dir);
    Some(Sort::Ipoib(Box::new(Interface {
        name: name.clone(),
        altnames: Vec::new(),
        ifindex,
        parent,
        parent_name: None,
        pci,
        port: dev_port.filter(|_| pci.is_some()).and_then(|p| PortNumber::new(p + 1).ok()),
        guid: look.attribute(&format!("{dir}/address")).and_then(|a| port_guid_of(&a)),
        pkey: pkey_of(&bytes(look, &format!("{dir}/broadcast"))),
        omni_path: pci.is_some_and(|pci| pf::is_omni_path(look, pci)),
        can_connect: address.first().is_some_and(|b| b & CONNECTED != 0),
        mode: mode.and_then(|m| m.parse().ok()),
        mtu: number(look, &dir, "mtu"),
        umcast: number(look, &dir, "umcast").map(|n| n != 0),
        up: flags.is_some_and(is_up),
    })))
}

/// Whether these flags of a netdev say that somebody brought it up.
pub(super) const fn is_up(flags: u32) -> bool {
    flags & IFF_UP.cast_unsigned() != 0
}

fn number(look: &mut Look<'_>, dir: &str, attribute: &str) -> Option<u32> {
    look.number(&format!("{dir}/{attribute}"))
}

/// The flags of the netdev at `dir`.
pub(super) fn flags(look: &mut Look<'_>, dir: &str) -> Option<u32> {
    look.parsed(&format!("{dir}/flags"), |t| {
        let digits = t.strip_prefix("0x").unwrap_or(t);
        u32::from_str_radix(digits, 16).map_err(|_| format!("{t:?} is not a number"))
    })
}

/// `00:ff:...`; nothing if it is no such text.
fn bytes(look: &mut Look<'_>, path: &str) -> Vec<u8> {
    let text = look.attribute(path).unwrap_or_default();
    text.split(':').map(|b| u8::from_str_radix(b, 16)).collect::<Result<_, _>>().unwrap_or_default()
}

/// Bytes 8 and 9 of the broadcast address are the P_Key (RFC 4391, section 4).
fn pkey_of(broadcast: &[u8]) -> Option<PKey> {
    match broadcast {
        [_, _, _, _, _, _, _, _, high, low, ..] if broadcast.len() == 20 => {
            PKey::new(u16::from_be_bytes([*high, *low]))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Root;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("sys/class/net/{path}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        crate::host::testing::tree(&files, &[])
    }

    const ADDRESS: &str = "80:00:10:49:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:12:a4:80\n";
    const BROADCAST: &str = "00:ff:ff:ff:ff:12:40:1b:80:0a:00:00:00:00:00:00:ff:ff:ff:ff\n";

    #[test]
    fn a_child_without_files_of_its_own_is_read_from_its_address() {
        let dir = tree(&[
            ("ib0.000a/ifindex", "7\n"),
            ("ib0.000a/iflink", "3\n"),
            ("ib0.000a/type", "32\n"),
            ("ib0.000a/address", ADDRESS),
            ("ib0.000a/broadcast", BROADCAST),
            ("ib0.000a/flags", "0x1003\n"),
            ("ib0.000a/mtu", "2044\n"),
            ("ib0.000a/uevent", "INTERFACE=ib0.000a\nIFINDEX=7\n"),
            ("bond0/ifindex", "9\n"),
            ("bond0/type", "32\n"),
            ("bond0/uevent", "DEVTYPE=bond\nINTERFACE=bond0\n"),
            ("lo/ifindex", "1\n"),
            ("lo/type", "772\n"),
        ]);
        let root = Root::copy_at(dir.path()).expect("root");
        let mut look = Look::new(&root);
        let all = interfaces(&mut look);
        let [child] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((child.parent, child.ifindex, child.mtu), (Some(3), 7, Some(2044)));
        assert_eq!(child.pkey.map(|p| p.to_string()).as_deref(), Some("0x800a"));
        assert_eq!(child.guid.map(|g| g.to_string()).as_deref(), Some("b859:9f03:0012:a480"));
        assert!(child.can_connect && child.up);
        assert_eq!((child.mode, child.umcast), (None, None));
        assert_eq!(look.problems.len(), 0, "{:?}", look.problems);
        let bond = sort(&mut look, &"bond0".parse().expect("name"));
        assert_eq!(bond, Some(Sort::Other("a bond".to_owned())));
        assert_eq!(sort(&mut look, &"ib9".parse().expect("name")), None);
    }
}
