//! rtnetlink, synchronous. The packet crates change often: only this file and
//! `links.rs` know them.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    LinkAttribute, LinkExtentMask, LinkMessage, LinkVfInfo, VfInfo, VfInfoGuid, VfInfoLinkState,
    VfLinkState,
};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteProtocol};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::names::{Guid, VfIndex};
use crate::observe::sriov::Administered;
use crate::plan::Policy;

/// What each netdev that is a PF says of its VFs, by interface index.
///
/// A dump, because a request for one link fails with EMSGSIZE from about 16
/// VFs on in kernels before the fix of `rtnl_vfinfo_size()` (2025).
///
/// # Errors
/// The socket fails, or the kernel refuses.
pub fn administered_vfs() -> io::Result<Vec<(u32, Vec<Administered>)>> {
    let mut request = LinkMessage::default();
    let mask = vec![LinkExtentMask::Vf, LinkExtentMask::SkipStats];
    request.attributes.push(LinkAttribute::ExtMask(mask));
    let mut found = Vec::new();
    dump(RouteNetlinkMessage::GetLink(request), |message| {
        let RouteNetlinkMessage::NewLink(link) = message else { return };
        for attribute in &link.attributes {
            if let LinkAttribute::VfInfoList(list) = attribute {
                let vfs = list.iter().filter_map(|vf| administered(&vf.0)).collect();
                found.push((link.header.index, vfs));
            }
        }
    })?;
    Ok(found)
}

fn dump(
    request: RouteNetlinkMessage,
    mut each: impl FnMut(&RouteNetlinkMessage),
) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut packet = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(request));
    packet.header.flags = NLM_F_DUMP | NLM_F_REQUEST;
    packet.header.sequence_number = 1;
    packet.finalize();
    let mut bytes = vec![0; packet.buffer_len()];
    packet.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        let mut rest = datagram.as_slice();
        while !rest.is_empty() {
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                .map_err(|e| io::Error::other(format!("unreadable netlink message: {e}")))?;
            match &message.payload {
                NetlinkPayload::Done(_) => return Ok(()),
                NetlinkPayload::Error(e) => return Err(e.to_io()),
                NetlinkPayload::InnerMessage(inner) => each(inner),
                _ => {}
            }
            // Messages are aligned to 4 bytes (NLMSG_ALIGN).
            let length = message.header.length.next_multiple_of(4);
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if length == 0 {
                break;
            }
            rest = rest.get(length..).unwrap_or_default();
        }
    }
}

fn administered(infos: &[VfInfo]) -> Option<Administered> {
    let mut vf = Administered::default();
    let mut known = false;
    for info in infos {
        let index = match info {
            VfInfo::IbNodeGuid(guid) => {
                vf.node_guid = Some(Guid::new(guid.guid));
                guid.vf_id
            }
            VfInfo::IbPortGuid(guid) => {
                vf.port_guid = Some(Guid::new(guid.guid));
                guid.vf_id
            }
            VfInfo::LinkState(link) => {
                vf.policy = match link.state {
                    VfLinkState::Auto => Some("Follow".to_owned()),
                    VfLinkState::Enable => Some("Up".to_owned()),
                    VfLinkState::Disable => Some("Down".to_owned()),
                    _ => None,
                };
                link.vf_id
            }
            _ => continue,
        };
        vf.index = index;
        known = true;
    }
    known.then_some(vf)
}

/// The addresses of every netdev, `10.0.0.5/24`, without link-local ones.
///
/// # Errors
/// `getifaddrs(3)` fails.
pub fn addresses() -> io::Result<Vec<(String, String)>> {
    let mut addresses = Vec::new();
    for entry in nix::ifaddrs::getifaddrs()? {
        let (Some(address), Some(mask)) = (entry.address, entry.netmask) else { continue };
        let text = if let (Some(a), Some(m)) = (address.as_sockaddr_in(), mask.as_sockaddr_in()) {
            format!("{}/{}", a.ip(), m.ip().to_bits().count_ones())
        } else if let (Some(a), Some(m)) = (address.as_sockaddr_in6(), mask.as_sockaddr_in6()) {
            if a.ip().is_unicast_link_local() {
                continue;
            }
            format!("{}/{}", a.ip(), m.ip().to_bits().count_ones())
        } else {
            continue;
        };
        addresses.push((entry.interface_name, text));
    }
    Ok(addresses)
}

/// The addresses that a peer can use: of global scope, and past duplicate
/// address detection; each with the index of its netdev and its prefix length.
///
/// # Errors
/// As [`administered_vfs`].
pub fn global_addresses() -> io::Result<Vec<(u32, IpAddr, u8)>> {
    let mut found = Vec::new();
    dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()), |message| {
        let RouteNetlinkMessage::NewAddress(entry) = message else { return };
        let header = &entry.header;
        let unusable = AddressHeaderFlags::Tentative | AddressHeaderFlags::Dadfailed;
        if header.scope != AddressScope::Universe || header.flags.intersects(unusable) {
            return;
        }
        let of = |want_local: bool| {
            entry.attributes.iter().find_map(|attribute| match attribute {
                AddressAttribute::Local(address) if want_local => Some(*address),
                AddressAttribute::Address(address) if !want_local => Some(*address),
                _ => None,
            })
        };
        // On a point-to-point link IFA_ADDRESS is the peer's.
        if let Some(address) = of(true).or_else(|| of(false)) {
            found.push((header.index, address, header.prefix_len));
        }
    })?;
    Ok(found)
}

/// One thing that a PF can set for a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VfSetting {
    /// IFLA_VF_IB_NODE_GUID.
    NodeGuid(Guid),
    /// IFLA_VF_IB_PORT_GUID.
    PortGuid(Guid),
    /// IFLA_VF_LINK_STATE.
    Policy(Policy),
}

/// Set one thing for VF `vf` of the PF whose IPoIB netdev has index `ifindex`.
///
/// One attribute a message: `do_setvfinfo()` (net/core/rtnetlink.c) returns
/// after the node GUID, so a port GUID in the same message would be dropped.
///
/// # Errors
/// EOPNOTSUPP where the driver cannot; ENODEV where the netdev is gone; what
/// the firmware answers.
pub fn set_vf(ifindex: u32, vf: VfIndex, setting: VfSetting) -> io::Result<()> {
    let vf = u32::from(vf.get());
    let info = match setting {
        VfSetting::NodeGuid(guid) => VfInfo::IbNodeGuid(VfInfoGuid::new(vf, guid.value())),
        VfSetting::PortGuid(guid) => VfInfo::IbPortGuid(VfInfoGuid::new(vf, guid.value())),
        VfSetting::Policy(policy) => VfInfo::LinkState(VfInfoLinkState::new(
            vf,
            match policy {
                Policy::Follow => VfLinkState::Auto,
                Policy::Up => VfLinkState::Enable,
                Policy::Down => VfLinkState::Disable,
            },
        )),
    };
    let mut link = LinkMessage::default();
    link.header.index = ifindex;
    link.attributes.push(LinkAttribute::VfInfoList(vec![LinkVfInfo(vec![info])]));
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let payload = NetlinkPayload::from(RouteNetlinkMessage::SetLink(link));
    let mut packet = NetlinkMessage::new(NetlinkHeader::default(), payload);
    packet.header.flags = NLM_F_REQUEST | NLM_F_ACK;
    packet.header.sequence_number = 1;
    packet.finalize();
    let mut bytes = vec![0; packet.buffer_len()];
    packet.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let (datagram, _) = socket.recv_from_full()?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&datagram)
        .map_err(|e| io::Error::other(format!("unreadable netlink message: {e}")))?;
    match answer.payload {
        NetlinkPayload::Error(e) if e.code.is_some() => Err(e.to_io()),
        _ => Ok(()),
    }
}

/// `RT_TABLE_LOCAL` (`include/uapi/linux/rtnetlink.h`).
const LOCAL_TABLE: u8 = 255;

/// What says that a netdev is used: addresses that reach further than the
/// link, and routes that the kernel did not make by itself; by its index.
///
/// # Errors
/// The socket fails, or the kernel refuses.
pub fn net_uses() -> io::Result<Vec<(u32, String)>> {
    let mut uses = Vec::new();
    dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()), |message| {
        let RouteNetlinkMessage::NewAddress(address) = message else { return };
        let near = [AddressScope::Link, AddressScope::Host, AddressScope::Nowhere];
        if near.contains(&address.header.scope) {
            return;
        }
        let ip = address.attributes.iter().find_map(|a| match a {
            AddressAttribute::Local(ip) => Some(ip),
            _ => None,
        });
        let ip = ip.or_else(|| {
            address.attributes.iter().find_map(|a| match a {
                AddressAttribute::Address(ip) => Some(ip),
                _ => None,
            })
        });
        let ip = ip.map_or_else(|| "?".to_owned(), ToString::to_string);
        uses.push((address.header.index, format!("address {ip}/{}", address.header.prefix_len)));
    })?;
    dump(RouteNetlinkMessage::GetRoute(RouteMessage::default()), |message| {
        let RouteNetlinkMessage::NewRoute(route) = message else { return };
        let local = route.header.table == LOCAL_TABLE;
        if local || route.header.protocol == RouteProtocol::Kernel {
            return;
        }
        let out = route.attributes.iter().flat_map(|a| match a {
            RouteAttribute::Oif(index) => vec![*index],
            RouteAttribute::MultiPath(hops) => hops.iter().map(|h| h.interface_index).collect(),
            _ => Vec::new(),
        });
        let to = route.attributes.iter().find_map(|a| match a {
            RouteAttribute::Destination(to) => Some(to),
            _ => None,
        });
        // The kernel's own for every IPv6 link, made as "boot" by older kernels.
        let near = |to: &RouteAddress| match to {
            RouteAddress::Inet6(ip) => ip.is_unicast_link_local() || ip.is_multicast(),
            _ => false,
        };
        if to.is_some_and(near) {
            return;
        }
        let prefix = route.header.destination_prefix_length;
        let to = match to {
            Some(RouteAddress::Inet(ip)) => format!("{ip}/{prefix}"),
            Some(RouteAddress::Inet6(ip)) => format!("{ip}/{prefix}"),
            _ => "default".to_owned(),
        };
        uses.extend(out.map(|index| (index, format!("route to {to}"))));
    })?;
    Ok(uses)
}
