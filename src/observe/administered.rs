//! What a PF administers for its VFs, read back from where it is set.
//!
//! All of it may keep its reader waiting for long, uninterruptibly: OFED's
//! `sriov/N` and mlx4's `iov` files send firmware commands, and netlink waits for
//! the RTNL lock (`rtnetlink_rcv_msg()`, net/core/rtnetlink.c) and, holding it, for
//! the firmware commands of `ndo_get_vf_config`. On a live host a child reads it.

use std::io;

use serde::{Deserialize, Serialize};

use super::pci::dir;
use super::{Look, Root};
use crate::host::netlink;
use crate::names::{Administered, Guid, PciAddress, Policy, Port2, PortNumber, VfIndex, VfName};

/// By which of the host's interfaces a PF administers its VFs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "backend", rename_all = "kebab-case")]
pub enum Backend {
    /// MLNX_OFED's `sriov/N/{node,port,policy}` at the PF.
    OfedSysfs,
    /// Mainline's rtnetlink, through the PF's IPoIB netdev.
    Netlink {
        /// The netdev; without it nothing can be set or read.
        ifindex: Option<u32>,
    },
    /// mlx4's alias GUIDs, `iov/ports/P/admin_guids` of the RDMA device. They
    /// have neither node GUID nor policy.
    Mlx4 {
        /// The RDMA device's `iov` directory, if it is there yet.
        iov: Option<String>,
    },
}

/// The question what a PF administers for VFs of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfInfoQuery {
    pub pf: PciAddress,
    pub backend: Backend,
    /// The VFs, each with its PCI function.
    pub vfs: Vec<(VfIndex, PciAddress)>,
}

/// What a PF administers for one VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdministeredVf {
    pub vf: VfName,
    /// What is administered for it.
    pub admin: Administered,
    /// What could not be read, one line each, for a report.
    pub problems: Vec<String>,
}

/// Ask. By netlink all PFs of the host are asked at once, so several questions
/// together cost as much as one.
///
/// # Errors
/// Netlink's: the socket fails, or the kernel refuses. What cannot be read of a
/// file is in the answer.
pub fn administered(root: &Root, questions: &[VfInfoQuery]) -> io::Result<Vec<AdministeredVf>> {
    let by_netlink = |q: &VfInfoQuery| matches!(q.backend, Backend::Netlink { ifindex: Some(_) });
    // A copied tree has no kernel to ask.
    let netdevs = if root.is_live() && questions.iter().any(by_netlink) {
        netlink::administered_vfs()?
    } else {
        Vec::new()
    };
    let each = |question: &VfInfoQuery| {
        let of_pf = match question.backend {
            Backend::Netlink { ifindex } => netdevs.iter().find(|(i, _)| Some(*i) == ifindex),
            _ => None,
        };
        let of_pf = of_pf.map(|(_, vfs)| vfs.as_slice()).unwrap_or_default();
        question.vfs.iter().map(|vf| one(root, question, *vf, of_pf)).collect::<Vec<_>>()
    };
    Ok(questions.iter().flat_map(each).collect())
}

fn one(
    root: &Root,
    question: &VfInfoQuery,
    (index, pci): (VfIndex, PciAddress),
    by_netlink: &[(VfIndex, Administered)],
) -> AdministeredVf {
    let mut look = Look::new(root);
    let admin = match &question.backend {
        Backend::OfedSysfs => {
            let dir = format!("{}/sriov/{index}", dir(question.pf));
            let node_guid = look.parsed(&format!("{dir}/node"), |t| t.parse::<Guid>());
            let port_guid = look.parsed(&format!("{dir}/port"), |t| t.parse::<Guid>());
            let policy = look.attribute(&format!("{dir}/policy"));
            Administered {
                is_answered: node_guid.is_some() && port_guid.is_some() && policy.is_some(),
                node_guid,
                port_guid,
                // Another word says that nobody has set one.
                policy: policy.and_then(|t| Policy::from_word(&t)),
                ..Administered::default()
            }
        }
        Backend::Netlink { .. } => {
            let vf = by_netlink.iter().find(|(vf, _)| *vf == index);
            vf.map(|(_, administered)| *administered).unwrap_or_default()
        }
        Backend::Mlx4 { iov: Some(iov) } => {
            let ports = alias_entries(&mut look, iov, pci);
            if ports.is_empty() {
                look.problems.insert(format!("{iov}/{pci}/ports: the VF has no InfiniBand port"));
            }
            let mut ports = ports.iter().map(|(_, entry)| {
                let gid = look.attribute(&entry.replace("/admin_guids/", "/gids/"));
                let guid = look.parsed(entry, |t| alias_guid(t).parse::<Guid>());
                (guid, gid.and_then(|gid| Guid::from_gid(&gid)))
            });
            let (port_guid, granted) = ports.next().unwrap_or_default();
            let port2 = ports.next().map(|(guid, granted)| Port2 { guid, granted });
            let is_answered = port_guid.is_some() && port2.is_none_or(|port| port.guid.is_some());
            // Of a port that is not active the driver asks no subnet manager (`set_guid_rec()`).
            let active = look.attribute(&format!("{}/ports/2/state", device_of(iov)));
            let is_asked = active.is_some_and(|state| state.starts_with("4:"));
            let port2 =
                port2.map(|port| Port2 { granted: port.granted.filter(|_| is_asked), ..port });
            Administered { port_guid, granted, port2, is_answered, ..Administered::default() }
        }
        Backend::Mlx4 { iov: None } => Administered::default(),
    };
    let vf = VfName { pf: question.pf, index };
    AdministeredVf { vf, admin, problems: look.problems.into_iter().collect() }
}

/// The InfiniBand ports of the PF that an mlx4 VF has, each with where the alias GUID of the VF is
/// kept: the entry of the GID table that is the VF's own GID 0. They are in the order in which the
/// VF counts them: one of port 2 alone shows it as its port 1 (`mlx4_slave_convert_port()`).
pub fn alias_entries(look: &mut Look<'_>, iov: &str, pci: PciAddress) -> Vec<(PortNumber, String)> {
    let mut entry = |port| {
        let index: u32 = look.number(&format!("{iov}/{pci}/ports/{port}/gid_idx/0"))?;
        is_infiniband(look, &format!("{}/ports/{port}", device_of(iov)))
            .then(|| (port, format!("{iov}/ports/{port}/admin_guids/{index}")))
    };
    [PortNumber::FIRST, PortNumber::SECOND].into_iter().filter_map(&mut entry).collect()
}

/// The RDMA device of an `iov` directory.
fn device_of(iov: &str) -> &str {
    iov.trim_end_matches("/iov")
}

/// The port of an RDMA device at `dir` is one of InfiniBand.
pub(super) fn is_infiniband(look: &mut Look<'_>, dir: &str) -> bool {
    look.attribute(&format!("{dir}/link_layer")).as_deref() == Some("InfiniBand")
}

/// mlx4 prints an alias GUID as one hexadecimal number, leading zeros left out.
fn alias_guid(text: &str) -> String {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    format!("{digits:0>16}")
}
