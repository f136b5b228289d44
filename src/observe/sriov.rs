//! The VFs of a PF: where they are, what is bound to them, their GUIDs as the
//! PF administers them.
//!
//! `sriov_numvfs` is not read: its reader waits for a lock that a hanging
//! writer holds (`drivers/pci/iov.c`). The `virtfnN` links say the same.

use crate::report::hardware::Vf;

use crate::host::netlink::Administered;

use super::Look;
use crate::names::{Guid, PciAddress};

/// The VFs of `pf`. GUIDs and policy come from MLNX_OFED's `sriov/N`
/// directories where they exist; `administered` (netlink) fills the rest.
#[must_use]
pub fn vfs(look: &mut Look<'_>, pf: PciAddress, administered: &[Administered]) -> Vec<Vf> {
    let dir = format!("/sys/bus/pci/devices/{pf}");
    let mut vfs = Vec::new();
    for entry in look.list(&dir) {
        let Some(index) = entry.strip_prefix("virtfn").and_then(|n| n.parse::<u32>().ok()) else {
            continue;
        };
        let target = look.link_name(&format!("{dir}/{entry}"));
        let Some(pci) = target.and_then(|t| t.parse::<PciAddress>().ok()) else { continue };
        let ofed = |name: &str| format!("{dir}/sriov/{index}/{name}");
        let node_guid = look.parsed(&ofed("node"), |t| t.parse::<Guid>());
        let port_guid = look.parsed(&ofed("port"), |t| t.parse::<Guid>());
        let policy = look.attribute(&ofed("policy"));
        let by_netlink = administered.iter().find(|a| a.index == index);
        vfs.push(Vf {
            index,
            pci,
            driver: look.link_name(&format!("/sys/bus/pci/devices/{pci}/driver")),
            node_guid: node_guid.or_else(|| by_netlink.and_then(|a| a.node_guid)),
            port_guid: port_guid.or_else(|| by_netlink.and_then(|a| a.port_guid)),
            policy: policy.or_else(|| by_netlink.and_then(|a| a.policy.clone())),
        });
    }
    vfs.sort_by_key(|vf| vf.index);
    vfs
}
