//! Soft RoCE devices and their netdevs, as sysfs shows them.

use nix::libc::ARPHRD_INFINIBAND;

use super::{Look, udev};
use crate::config::RxeRow;
use crate::host::Root;
use crate::names::{IfName, RdmaName};

/// The RDMA devices of the host, and the netdevs that rows name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RxeSeen {
    pub devices: Vec<RxeDevice>,
    /// The netdevs of the rows that exist.
    pub netdevs: Vec<RxeNetdev>,
}

/// An RDMA device.
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
    let devices = devices.map(|name| RxeDevice { rxe_on: netdev_of(root, &name), name });
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
            is_named: record.is_some_and(|record| !record.renaming),
        });
    }
    RxeSeen { devices, netdevs }
}

/// The netdev of a soft RoCE device, whose driver shows it as `parent`
/// (`drivers/infiniband/sw/rxe/rxe_verbs.c`). No other driver has that attribute.
fn netdev_of(root: &Root, device: &RdmaName) -> Option<IfName> {
    root.attribute(&format!("/sys/class/infiniband/{device}/parent")).ok()?.parse().ok()
}
