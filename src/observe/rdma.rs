//! RDMA devices, their ports and netdevs, as sysfs and RDMA netlink show them; soft RoCE too.

use nix::libc::{ARPHRD_ETHER, ARPHRD_INFINIBAND};

use super::{Look, udev};
use crate::config::RxeRow;
use crate::host::{ReadError, Root, answer, rdma_netlink};
use crate::names::{Guid, IfName, LinkLayer, Moment, PortNumber, RdmaName};

/// An RDMA device that a driver registered (`/sys/class/infiniband/NAME`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdmaDevice {
    pub name: RdmaName,
    pub node_guid: Option<Guid>,
    /// Its ports, by number.
    pub ports: Vec<Port>,
}

/// A port of an RDMA device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Which one, from 1.
    pub number: PortNumber,
    /// InfiniBand (and Omni-Path), or Ethernet.
    pub link_layer: LinkLayer,
    /// Its port GUID: the low half of GID 0.
    pub guid: Option<Guid>,
    pub netdev: Option<NetDev>,
    /// The netdev of a port in Ethernet mode; `None` if it has none, or several may be it.
    pub ethernet: Option<NetDev>,
}

/// A netdev of a port: ARPHRD 32 or 1, child of the PCI function, no P_Key child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetDev {
    pub name: IfName,
    /// Its index, which a rename does not change.
    pub ifindex: u32,
    /// udev has finished with it and no rename is pending: the name is final.
    pub named: bool,
    /// When udev first finished with it.
    pub named_usec: Option<Moment>,
    /// The port GUID in the last 8 bytes of an IPoIB netdev's link-layer address.
    pub guid: Option<Guid>,
}

/// How many netdevs ib_ipoib has of the RDMA device `name`, P_Key children among them, in
/// whatever network namespace: it owns a protection domain for each (`ipoib_dev_init()`,
/// drivers/infiniband/ulp/ipoib/ipoib_main.c).
///
/// `None` where that cannot be told: in a copied tree, before Linux 4.17, and for a process
/// that sees nothing of what the kernel owns, as in a PID namespace of its own
/// (`rdma_is_visible_in_pid_ns()`, drivers/infiniband/core/restrack.c). ib_core owns a
/// protection domain of each device that has an InfiniBand port, so that one is seen at least.
///
/// Waits, uninterruptibly, behind a registration of an RDMA device that waits for the RTNL lock
/// or for firmware, as soon as another device comes (`devices_rwsem`,
/// drivers/infiniband/core/device.c): only a child asks this.
pub fn ipoib_netdevs(root: &Root, name: &RdmaName) -> Option<usize> {
    if !root.is_live() {
        return None;
    }
    let count = || match rdma_netlink::modules_with_pd(name.as_str()) {
        Ok(modules) if modules.is_empty() => None,
        Ok(modules) => Some(modules.iter().filter(|module| *module == "ib_ipoib").count()),
        Err(e) => {
            tracing::debug!(cause = answer(&e), "{name}: protection domains cannot be read");
            None
        }
    };
    let now = count();
    if now == Some(0) {
        // Its registration may not have got to ib_ipoib. Without the file nothing is waited for.
        drop(wait_for_probe(root, &format!("/sys/class/infiniband/{name}/device")));
        return count();
    }
    now
}

/// Wait until no probe of the function at `dir` is at work: the kernel reads driver_override with
/// the lock held that a probe holds (`driver_override_show()`, drivers/pci/pci-sysfs.c). The probe
/// of its RDMA half by an mlx5_ib that is loaded afterwards holds another one.
///
/// # Errors
/// The file cannot be read.
pub(super) fn wait_for_probe(root: &Root, dir: &str) -> Result<(), ReadError> {
    root.attribute(&format!("{dir}/driver_override")).map(drop)
}

/// The RDMA devices of a PCI function, without sub-devices.
pub(super) fn devices(look: &mut Look<'_>, pci_dir: &str) -> Vec<RdmaDevice> {
    let dir = format!("{pci_dir}/infiniband");
    let names: Vec<RdmaName> = look.names(&dir);
    if names.is_empty() {
        return Vec::new();
    }
    let netdevs = netdevs(look, pci_dir, ARPHRD_INFINIBAND);
    let mut devices = Vec::new();
    for name in names {
        let device = format!("{dir}/{name}");
        let node_guid = look.parsed(&format!("{device}/node_guid"), |t| t.parse::<Guid>());
        let mut ports = ports(look, &format!("{device}/ports"), &netdevs);
        if ports.iter().any(|port| port.link_layer == LinkLayer::Ethernet) {
            give_ethernet(look, pci_dir, &mut ports);
        }
        devices.push(RdmaDevice { name, node_guid, ports });
    }
    if devices.len() > 1 {
        let own = own(look, pci_dir, &devices);
        devices.retain(|device| own.contains(&device.name));
    }
    devices
}

/// Those of a function's `devices` that are no sub-device of another. One of type SMI
/// (Linux 6.11 and later, `rdma dev add NAME type SMI parent DEVICE`) is for the
/// management of the planes of its parent: its ports are planes, and never have a netdev.
/// It has its parent's PCI function, and any name. Only RDMA netlink says its type, under
/// a lock that a registration which hangs can hold; in sysfs it has no verbs
/// (`ib_uverbs_add_one()`) and no hardware counters (`plane_profile` in
/// drivers/infiniband/hw/mlx5/main.c). Where none has either, all count.
fn own(look: &mut Look<'_>, pci_dir: &str, devices: &[RdmaDevice]) -> Vec<RdmaName> {
    let dir = format!("{pci_dir}/infiniband_verbs");
    let mut with_verbs = Vec::new();
    for entry in look.list(&dir) {
        with_verbs.extend(look.attribute(&format!("{dir}/{entry}/ibdev")));
    }
    let has_verbs = |device: &RdmaDevice| with_verbs.iter().any(|v| v == device.name.as_str());
    let root = look.root;
    let has_counters = |device: &RdmaDevice| {
        root.exists(&format!("{pci_dir}/infiniband/{}/ports/1/hw_counters", device.name))
    };
    let marks: [&dyn Fn(&RdmaDevice) -> bool; 2] = [&has_verbs, &has_counters];
    let own = marks.into_iter().find(|mark| devices.iter().any(mark));
    let counts = |device: &&RdmaDevice| own.is_none_or(|own| own(device));
    devices.iter().filter(counts).map(|device| device.name.clone()).collect()
}

fn ports(look: &mut Look<'_>, dir: &str, netdevs: &[(i64, NetDev)]) -> Vec<Port> {
    let mut ports = Vec::new();
    for entry in look.list(dir) {
        let number = entry.parse::<i64>().ok().and_then(|n| PortNumber::new(n).ok());
        let Some(number) = number else {
            look.problems.insert(format!("{dir}: {entry:?} is not a port number"));
            continue;
        };
        let port = format!("{dir}/{number}");
        let link_layer = match look.attribute(&format!("{port}/link_layer")).as_deref() {
            Some("InfiniBand") => LinkLayer::InfiniBand,
            Some("Ethernet") => LinkLayer::Ethernet,
            _ => LinkLayer::Unknown,
        };
        // Only InfiniBand has a port GUID; RoCE's GID 0 is made of the MAC.
        let guid = (link_layer == LinkLayer::InfiniBand)
            .then(|| {
                look.parsed(&format!("{port}/gids/0"), |t| {
                    Guid::from_gid(t).ok_or_else(|| format!("{t:?} is not a GID"))
                })
            })
            .flatten();
        // dev_port counts from 0 (IPoIB sets it to port - 1).
        let own = |(dev_port, _): &&(i64, NetDev)| *dev_port + 1 == i64::from(number.get());
        let netdev = netdevs.iter().find(own).map(|(_, n)| n.clone());
        ports.push(Port { number, link_layer, guid, netdev, ethernet: None });
    }
    ports.sort_unstable_by_key(|p| p.number);
    ports
}

/// Find the netdevs of those of a function's `ports` that are in Ethernet mode.
fn give_ethernet(look: &mut Look<'_>, pci_dir: &str, ports: &mut [Port]) {
    let netdevs = netdevs(look, pci_dir, ARPHRD_ETHER);
    for port in ports.iter_mut().filter(|port| port.link_layer == LinkLayer::Ethernet) {
        let own = |(dev_port, _): &&(i64, NetDev)| *dev_port + 1 == i64::from(port.number.get());
        let mut found: Vec<&NetDev> = netdevs.iter().filter(own).map(|(_, n)| n).collect();
        if found.len() > 1 {
            // Of an eswitch the netdev of the uplink is meant, not those of VFs (`pf0vf3`).
            found.retain(|netdev| is_uplink(look, &netdev.name));
        }
        port.ethernet = match found.as_slice() {
            [netdev] => Some((*netdev).clone()),
            _ => None,
        };
    }
}

/// A netdev is that of a physical port: `phys_port_name` is `p0`, or the driver has none.
fn is_uplink(look: &Look<'_>, name: &IfName) -> bool {
    let Ok(port) = look.root.attribute(&format!("/sys/class/net/{name}/phys_port_name")) else {
        return true;
    };
    port.is_empty() || port.strip_prefix('p').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

/// The netdevs of one PCI function that have this ARPHRD type, each with its `dev_port`.
pub(super) fn netdevs(look: &mut Look<'_>, pci_dir: &str, arphrd: u16) -> Vec<(i64, NetDev)> {
    let dir = format!("{pci_dir}/net");
    let mut netdevs = Vec::new();
    for name in look.names::<IfName>(&dir) {
        let path = |attribute: &str| format!("{dir}/{name}/{attribute}");
        if look.number(&path("type")) != Some(u32::from(arphrd)) {
            continue;
        }
        let Some(ifindex) = look.number::<u32>(&path("ifindex")) else { continue };
        let dev_port = look.number::<u32>(&path("dev_port")).map_or(0, i64::from);
        let guid = look.attribute(&path("address")).and_then(|a| port_guid_of(&a));
        let record = udev::record(look, &name, ifindex);
        let named = udev::is_named(look.root, record.as_ref());
        let named_usec = record.and_then(|r| r.initialized);
        netdevs.push((dev_port, NetDev { name, ifindex, named, named_usec, guid }));
    }
    netdevs
}

/// The last 8 of the 20 bytes of an IPoIB address are the port GUID; the
/// first 4 hold the QPN and change at every rebind.
pub(super) fn port_guid_of(address: &str) -> Option<Guid> {
    let bytes: Vec<&str> = address.split(':').collect();
    if bytes.len() != 20 {
        return None;
    }
    bytes.get(12..)?.join(":").parse().ok()
}

/// The RDMA devices of the host, and the netdevs that rows name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RxeSeen {
    pub devices: Vec<RxeDevice>,
    /// The netdevs of the rows that exist.
    pub netdevs: Vec<RxeNetdev>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RxeDevice {
    pub name: RdmaName,
    /// It is soft RoCE, on this netdev; `None`: it is no soft RoCE device.
    pub rxe_on: Option<IfName>,
}

/// A netdev that a row names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RxeNetdev {
    pub name: IfName,
    /// It is an IPoIB interface.
    pub is_ipoib: bool,
    /// udev has finished with it: the name is final.
    pub is_named: bool,
}

/// Look at the RDMA devices, and at the netdevs of `rows`. Reads nothing that waits for a
/// lock.
pub fn rxe(root: &Root, rows: &[RxeRow]) -> RxeSeen {
    let mut look = Look::new(root);
    let names = look.list("/sys/class/infiniband");
    let devices = names.iter().filter_map(|name| name.parse::<RdmaName>().ok());
    let devices = devices.map(|name| RxeDevice { rxe_on: rxe_netdev(root, &name), name });
    let devices = devices.collect();
    let mut netdevs = Vec::new();
    for name in rows.iter().map(|row| &row.netdev) {
        let read = |attribute: &str| {
            root.attribute(&format!("/sys/class/net/{name}/{attribute}")).ok()?.parse::<u32>().ok()
        };
        let Some(ifindex) = read("ifindex") else { continue };
        let record = udev::record(&mut look, name, ifindex);
        netdevs.push(RxeNetdev {
            name: name.clone(),
            is_ipoib: read("type") == Some(ARPHRD_INFINIBAND.into()),
            is_named: udev::is_named(root, record.as_ref()),
        });
    }
    RxeSeen { devices, netdevs }
}

/// The netdev of a soft RoCE device, whose driver shows it as `parent`
/// (`drivers/infiniband/sw/rxe/rxe_verbs.c`). No other driver has that attribute.
fn rxe_netdev(root: &Root, device: &RdmaName) -> Option<IfName> {
    root.attribute(&format!("/sys/class/infiniband/{device}/parent")).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_guid_is_the_tail_of_the_address() {
        let address = "00:00:10:49:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:12:a4:80";
        assert_eq!(port_guid_of(address), Some(Guid::new(0xb859_9f03_0012_a480)));
        assert_eq!(port_guid_of("b8:59:9f:03:00:12"), None);
    }
}
