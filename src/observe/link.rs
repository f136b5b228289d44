//! What `ibprov status` shows beyond [`super::Observed`]: link states, which
//! ask the firmware, names of card and firmware, netdev settings, GID tables, node descriptions.

use std::net::Ipv6Addr;

use nix::libc::ARPHRD_INFINIBAND;
use serde::{Deserialize, Serialize};

use super::administered::{VfInfoQuery, administered};
use super::ipoib::is_up;
use super::{Look, PciFunction, RdmaDevice, pci, pf};
use crate::host::{Root, unit_links};
use crate::model::{
    Gid, Link, NetDevState, PKeyEntry,
    hardware::{Card, NodeDescription},
};
use crate::names::{
    BadText, GidKind, IfName, LinkLayer, LinkState, PciAddress, PhysicalState, Policy, PortNumber,
    RdmaName, TablePKey,
};

/// What is asked of a port by who waits for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortAnswer {
    pub link: Link,
    /// The link state, if it is the port of a VF of this host.
    pub policy: Option<Policy>,
}

/// Names of the card behind an RDMA device.
pub fn card(look: &mut Look<'_>, pci: PciAddress, device: &RdmaName) -> Card {
    let dir = rdma_dir(pci, device);
    let mut read = |name: &str| look.attribute(&format!("{dir}/{name}")).filter(|t| !t.is_empty());
    Card {
        hca_type: read("hca_type"),
        board: read("board_id"),
        firmware: read("fw_ver"),
        // -1 for none.
        numa_node: read("device/numa_node").and_then(|text| text.parse().ok()),
        pcie_switch: pci::switch(look.root, pci),
    }
}

/// The link of a port. Asks the firmware: may take long on a sick card.
#[must_use]
pub fn link(look: &mut Look<'_>, pci: PciAddress, device: &RdmaName, port: PortNumber) -> Link {
    let dir = format!("{}/ports/{port}", rdma_dir(pci, device));
    // "4: ACTIVE", "5: LinkUp": the number is the specification's, the word ours.
    let word = |look: &mut Look<'_>, name: &str| {
        let text = look.attribute(&format!("{dir}/{name}"))?;
        Some(text.split_once(": ").map_or(text.clone(), |(_, word)| word.to_owned()))
    };
    let is_omni_path = pf::is_omni_path(look, pci);
    let lid = |look: &mut Look<'_>, name: &str| {
        look.parsed(&format!("{dir}/{name}"), |text| {
            u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16)
                .map_err(|_| format!("{text:?} is not a LID"))
        })
        .filter(|lid| is_unicast(*lid, is_omni_path))
    };
    Link {
        state: word(look, "state").map(|word| LinkState::from_word(&word)),
        physical: word(look, "phys_state").map(|word| PhysicalState::from_word(&word)),
        rate: look.parsed(&format!("{dir}/rate"), |text| {
            text.parse().map_err(|e: BadText| e.to_string())
        }),
        lid: lid(look, "lid"),
        sm_lid: lid(look, "sm_lid"),
        // EINVAL where the driver has no performance management (`show_pma_counter()`,
        // drivers/infiniband/core/sysfs.c).
        link_downed: look
            .root
            .attribute(&format!("{dir}/counters/link_downed"))
            .ok()
            .and_then(|text| text.parse().ok()),
    }
}

/// True for a LID that a peer can use. 0 is none; from 0xc000 on those of InfiniBand are
/// multicast, and 0xffff stands for none before a subnet manager has given one (InfiniBand
/// Architecture, 4.1.3). Those of Omni-Path have 32 bits (`ppd->lid`, hfi1's verbs.c).
const fn is_unicast(lid: u32, is_omni_path: bool) -> bool {
    lid != 0 && (is_omni_path || lid < 0xc000)
}

/// The P_Key table of an InfiniBand port, without its empty entries; `None` if not all of it can
/// be read. Asks the firmware, once for each entry (`ib_query_pkey()`,
/// drivers/infiniband/core/device.c, and for mlx5 the command QUERY_HCA_VPORT_PKEY).
pub fn pkeys(
    look: &mut Look<'_>,
    pci: PciAddress,
    device: &RdmaName,
    port: PortNumber,
) -> Option<Vec<PKeyEntry>> {
    let dir = format!("{}/pkeys", port_dir(pci, device, port));
    let mut indexes: Vec<u16> = look.list(&dir).iter().filter_map(|n| n.parse().ok()).collect();
    indexes.sort_unstable();
    let mut table = Vec::new();
    for index in &indexes {
        let value = look.parsed(&format!("{dir}/{index}"), |text| {
            u16::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16)
                .map_err(|_| format!("{text:?} is not a P_Key"))
        })?;
        table.extend(TablePKey::new(value).map(|pkey| PKeyEntry::new(*index, pkey)));
    }
    (!indexes.is_empty()).then_some(table)
}

/// The link of a port, and if it is not up and a VF's, the link state that its PF
/// administers. Asks firmware and, by netlink, takes the RTNL lock.
pub fn port(look: &mut Look<'_>, pci: PciAddress, rdma: &RdmaName, port: PortNumber) -> PortAnswer {
    let link = link(look, pci, rdma, port);
    // Only a port that is not up may have been told so.
    let is_active = link.state == Some(LinkState::Active);
    PortAnswer { policy: if is_active { None } else { policy(look, pci) }, link }
}

/// The policy of the VF at `pci`; none if it is no VF, or one whose PF is on another
/// host. It only explains why a port is not up: where it cannot be read, the port is
/// told without it.
fn policy(look: &mut Look<'_>, pci: PciAddress) -> Option<Policy> {
    let pf = look.link_name(&format!("{}/physfn", pf::dir(pci)))?.parse().ok()?;
    let vf = pf::addresses(look, pf, |_| true).into_iter().find(|(_, own)| *own == pci)?;
    let question = VfInfoQuery { pf, backend: pf::backend(look, pf), vfs: vec![vf] };
    administered(look.root, &[question]).ok()?.pop()?.admin.policy
}

/// A netdev has carrier; none if it is down, gone, or cannot be read.
///
/// Since Linux 6.8 its reader needs the RTNL lock, and tries again and again while a
/// sick driver holds it (`carrier_show()`, net/core/net-sysfs.c). Nothing else that is
/// read of netdevs does, nor asks firmware.
pub fn carrier(root: &Root, name: &IfName) -> bool {
    // EINVAL while the netdev is down: no carrier then.
    root.attribute(&format!("/sys/class/net/{name}/carrier")).as_deref() == Ok("1")
}

/// How a netdev is set; its carrier is what the caller knows. What cannot be read is
/// absent: this is shown, not acted on, and a netdev that goes away meanwhile has none
/// of it.
pub fn netdev(root: &Root, name: &IfName, carrier: Option<bool>) -> NetDevState {
    let read = |attribute: &str| root.attribute(&format!("/sys/class/net/{name}/{attribute}")).ok();
    let flags =
        read("flags").and_then(|t| u32::from_str_radix(t.trim_start_matches("0x"), 16).ok());
    NetDevState {
        mode: read("mode"),
        mtu: read("mtu").and_then(|t| t.parse().ok()),
        admin_up: flags.map(is_up),
        carrier,
    }
}

/// The indices of `netdev` itself and of everything above it that may bear its
/// address: P_Key children, and what any of them is enslaved to. Devices come and
/// go while this looks: what is not there any more has no address to wait for.
pub fn above(root: &Root, netdev: &IfName, ifindex: u32) -> Vec<u32> {
    let number = |name: &str, attribute: &str| -> Option<u32> {
        root.attribute(&format!("/sys/class/net/{name}/{attribute}")).ok()?.parse().ok()
    };
    let mut found = vec![ifindex];
    let mut names = vec![netdev.as_str().to_owned()];
    // A P_Key child's iflink is its parent (ipoib_get_iflink()).
    for name in root.list_or_empty("/sys/class/net").unwrap_or_default() {
        if name != netdev.as_str()
            && number(&name, "iflink") == Some(ifindex)
            && number(&name, "type") == Some(ARPHRD_INFINIBAND.into())
        {
            found.extend(number(&name, "ifindex"));
            names.push(name);
        }
    }
    // A master shows as upper_NAME in its slave's directory.
    while let Some(name) = names.pop() {
        for entry in root.list_or_empty(&format!("/sys/class/net/{name}")).unwrap_or_default() {
            let Some(upper) = entry.strip_prefix("upper_") else { continue };
            if let Some(index) = number(upper, "ifindex")
                && !found.contains(&index)
            {
                found.push(index);
                names.push(upper.to_owned());
            }
        }
    }
    found
}

/// The GID table of a port, without its empty entries.
pub fn gids(
    root: &Root,
    pci: PciAddress,
    device: &RdmaName,
    (port, layer): (PortNumber, LinkLayer),
) -> Vec<Gid> {
    gids_in(root, &port_dir(pci, device, port), layer)
}

/// The directory of a port of a PCI function's RDMA device.
pub fn port_dir(pci: PciAddress, device: &RdmaName, port: PortNumber) -> String {
    format!("{}/ports/{port}", rdma_dir(pci, device))
}

/// The GID table of the port whose directory is `dir`, without its empty entries.
pub fn gids_in(root: &Root, dir: &str, layer: LinkLayer) -> Vec<Gid> {
    let mut look = Look::new(root);
    let mut indexes: Vec<u32> =
        look.list(&format!("{dir}/gids")).iter().filter_map(|n| n.parse().ok()).collect();
    indexes.sort_unstable();
    let mut gids = Vec::new();
    for index in indexes {
        // An unused entry of the table answers EINVAL: no problem, just no GID.
        let gid = root.attribute(&format!("{dir}/gids/{index}")).ok();
        let Some(gid) = gid.and_then(|t| t.parse::<Ipv6Addr>().ok()) else { continue };
        // An unused entry is all zero; an unused one with the prefix set has no port GUID.
        if gid.octets().iter().skip(8).all(|b| *b == 0) {
            continue;
        }
        let kind = root.attribute(&format!("{dir}/gid_attrs/types/{index}"));
        let netdev = root.attribute(&format!("{dir}/gid_attrs/ndevs/{index}")).ok();
        gids.push(Gid {
            index,
            // The kernel has one word for both: the link layer tells them apart.
            kind: match kind.as_deref() {
                Ok("IB/RoCE v1") | Err(_) if layer == LinkLayer::Ethernet => GidKind::RoceV1,
                Ok("IB/RoCE v1") | Err(_) => GidKind::Ib,
                Ok("RoCE v2") => GidKind::RoceV2,
                Ok(_) => GidKind::Unknown,
            },
            gid,
            ipv4: gid.to_ipv4_mapped(),
            netdev: netdev.and_then(|n| n.parse().ok()),
        });
    }
    gids
}

fn rdma_dir(pci: PciAddress, device: &RdmaName) -> String {
    format!("/sys/bus/pci/devices/{pci}/infiniband/{device}")
}

/// The RDMA devices on the host that are those of no PCI function shown: of software (rxe,
/// siw), and sub-devices.
pub fn software_devices(root: &Root, functions: &[PciFunction]) -> Vec<RdmaName> {
    let of_functions: Vec<&RdmaDevice> = functions.iter().flat_map(|f| f.rdma.iter()).collect();
    let all = root.list_or_empty("/sys/class/infiniband").unwrap_or_default();
    all.iter()
        .filter_map(|n| n.parse::<RdmaName>().ok())
        .filter(|n| !of_functions.iter().any(|d| d.name == *n))
        .collect()
}

/// How long a description can be, bytes (`IB_DEVICE_NODE_DESC_MAX`), and how much of it
/// rdma-ndd uses: it ends its text with a NUL.
const MOST: usize = 63;

/// The node description of `rdma`, by which subnet managers and `ibnetdiscover` show a node;
/// `None` if it cannot be read. The kernel keeps it: no firmware
/// is asked (`node_desc_show()`, drivers/infiniband/core/sysfs.c).
pub fn node_description(root: &Root, pci: PciAddress, rdma: &RdmaName) -> Option<NodeDescription> {
    let path = format!("{}/infiniband/{rdma}/node_desc", pf::dir(pci));
    let text = root.attribute(&path).ok()?;
    Some(NodeDescription { text, expected: expected(root, rdma) })
}

/// What rdma-ndd sets, if it is active.
fn expected(root: &Root, device: &RdmaName) -> Option<String> {
    // systemd's record of an active unit, a link to nothing.
    if !unit_links::is_up(root, "rdma-ndd.service") {
        return None;
    }
    let host = root.attribute("/proc/sys/kernel/hostname").ok()?;
    let host = host.split('.').next().unwrap_or_default();
    let mut format = None;
    for dir in ["/usr/lib/systemd/system", "/etc/systemd/system", "/run/systemd/system"] {
        let dir = format!("{dir}/rdma-ndd.service.d");
        for name in root.list_or_empty(&dir).unwrap_or_default() {
            let text = root.text(&format!("{dir}/{name}"), 1 << 16).unwrap_or_default();
            format = text.lines().filter_map(format_of).next_back().or(format);
        }
    }
    Some(described(format.as_deref().unwrap_or("%h %d"), host, device.as_str()))
}

/// The value of `RDMA_NDD_ND_FORMAT` that a line of a unit sets; systemd has `%%` for `%`.
fn format_of(line: &str) -> Option<String> {
    let setting = line.trim().strip_prefix("Environment=")?;
    let (before, value) = setting.split_once("RDMA_NDD_ND_FORMAT=")?;
    let end = match before.chars().last() {
        Some(quote @ ('"' | '\'')) => value.find(quote)?,
        _ => value.find(char::is_whitespace).unwrap_or(value.len()),
    };
    Some(value.get(..end)?.trim_matches(['"', '\'']).replace("%%", "%"))
}

/// `format` with its wild cards replaced, as `build_node_desc()` of rdma-ndd.c does it.
fn described(format: &str, host: &str, device: &str) -> String {
    let mut text = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        match c {
            '%' => match rest.next() {
                Some('h') => text.push_str(host),
                Some('d') => text.push_str(device),
                _ => {}
            },
            c => text.push(c),
        }
    }
    while text.len() > MOST {
        text.pop();
    }
    text
}

/// Whether ib_uverbs (`infiniband_verbs`) or ib_umad (`infiniband_mad`) has made a device node for
/// `device` of the function, or for that port of it; `None` if a copy does not show it. issm nodes
/// are not meant: the kernel makes none where a port cannot be a subnet manager's.
pub fn has_node(
    root: &Root,
    pci: PciAddress,
    class: &str,
    device: &RdmaName,
    port: Option<PortNumber>,
) -> Option<bool> {
    if !root.exists(&format!("/sys/class/{class}")) {
        return None;
    }
    let dir = format!("{}/{class}", pf::dir(pci));
    let mut is_known = true;
    for node in root.list_or_empty(&dir).ok()?.iter().filter(|node| !node.starts_with("issm")) {
        let read = |name: &str| root.attribute(&format!("{dir}/{node}/{name}")).ok();
        let of_device = read("ibdev").map(|name| name == device.as_str());
        let of_port = match port {
            Some(port) => read("port").map(|number| number == port.to_string()),
            None => Some(true),
        };
        match (of_device, of_port) {
            (Some(true), Some(true)) => return Some(true),
            (Some(false), _) | (_, Some(false)) => {}
            _ => is_known = false,
        }
    }
    is_known.then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_rdma_ndd_s() {
        assert_eq!(described("%h %d", "node7", "mlx5_0"), "node7 mlx5_0");
        assert_eq!(described("%d@%h%x%", "node7", "mlx5_0"), "mlx5_0@node7");
        assert_eq!(described("%h", &"n".repeat(90), "mlx5_0").len(), 63);
        for (line, want) in [
            ("Environment=\"RDMA_NDD_ND_FORMAT=%%h HCA-%%d\"", Some("%h HCA-%d")),
            ("Environment=RDMA_NDD_ND_FORMAT=%%h", Some("%h")),
            ("Environment=A=1 RDMA_NDD_ND_FORMAT=%%d B=2", Some("%d")),
            ("Environment=A=1", None),
            ("# Environment=RDMA_NDD_ND_FORMAT=%%h", None),
        ] {
            assert_eq!(format_of(line).as_deref(), want, "{line}");
        }
    }
}
