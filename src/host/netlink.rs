//! rtnetlink, synchronous: VFs as their PF administers them, addresses, routes.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, parse_ip};
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::libc::{
    IFA_ADDRESS, IFA_F_DADFAILED, IFA_F_TENTATIVE, IFA_LOCAL, IFLA_EXT_MASK, IFLA_VFINFO_LIST,
    RT_SCOPE_HOST, RT_SCOPE_LINK, RT_SCOPE_NOWHERE, RT_SCOPE_UNIVERSE, RT_TABLE_LOCAL, RTA_DST,
    RTA_MULTIPATH, RTA_OIF, RTEXT_FILTER_SKIP_STATS, RTEXT_FILTER_VF, RTM_GETADDR, RTM_GETLINK,
    RTM_GETROUTE, RTM_NEWADDR, RTM_NEWLINK, RTM_NEWROUTE, RTM_SETLINK, RTPROT_KERNEL, ifinfomsg,
};
use serde::{Deserialize, Serialize};

use super::netlink_wire::{
    Question, after, attribute, attributes, u16_at, u32_at, u64_at, value_of,
};
use crate::names::{Administered, Guid, Policy, VfIndex};

/// Tell of VFs, without their statistics.
const VFS_WITHOUT_STATISTICS: u32 = (RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS).cast_unsigned();
/// Scopes that reach no further than the link.
const NEAR: [u8; 3] = [RT_SCOPE_LINK, RT_SCOPE_HOST, RT_SCOPE_NOWHERE];
/// Flags of an address that is not to be used: it is another host's, or may be.
const UNUSABLE: u32 = IFA_F_DADFAILED | IFA_F_TENTATIVE;

// What libc lacks of include/uapi/linux/rtnetlink.h and if_addr.h: `struct rtmsg` and
// `struct ifaddrmsg`.
const ROUTE_HEADER: usize = 12;
const ADDRESS_HEADER: usize = 8;
// And of include/uapi/linux/if_link.h, nested in IFLA_VFINFO_LIST.
const IFLA_VF_INFO: u16 = 1;
const IFLA_VF_LINK_STATE: u16 = 5;
const IFLA_VF_IB_NODE_GUID: u16 = 10;
const IFLA_VF_IB_PORT_GUID: u16 = 11;
/// IFLA_VF_LINK_STATE_AUTO, _ENABLE, _DISABLE.
const STATES: [(u32, Policy); 3] = [(0, Policy::Follow), (1, Policy::Up), (2, Policy::Down)];
/// Where `struct ifla_vf_guid { __u32 vf; __u64 guid; }` has its GUID.
const GUID_AT: usize = std::mem::align_of::<u64>();

pub(super) const LINK_HEADER: usize = std::mem::size_of::<ifinfomsg>();
const LINK_INDEX_AT: usize = std::mem::offset_of!(ifinfomsg, ifi_index);

/// A link's header, for the interface with this index.
pub(super) fn link_header(ifindex: u32) -> Vec<u8> {
    let mut header = vec![0; LINK_INDEX_AT];
    header.extend(ifindex.to_ne_bytes());
    header.resize(LINK_HEADER, 0);
    header
}

/// The interface index of a PF's netdev, and what it says of the PF's VFs.
pub type VfsOfNetdev = (u32, Vec<(VfIndex, Administered)>);

/// What each netdev that is a PF says of its VFs, by interface index.
///
/// A dump, because a request for one link fails with EMSGSIZE for some numbers of VFs, from
/// about 16 on, in kernels before the fix of `rtnl_vfinfo_size()` (2025). The dump does not,
/// because of what [`Question::ask`] offers it.
///
/// # Errors
/// The socket fails, or the kernel refuses.
pub fn administered_vfs() -> io::Result<Vec<VfsOfNetdev>> {
    let mut payload = link_header(0);
    payload.extend(attribute(IFLA_EXT_MASK, &VFS_WITHOUT_STATISTICS.to_ne_bytes()));
    list(RTM_GETLINK, &payload).ask(&mut only(RTM_NEWLINK, vfs_in))
}

pub(super) fn vfs_in(link: &[u8]) -> Option<VfsOfNetdev> {
    let list = value_of(after(link, LINK_HEADER), IFLA_VFINFO_LIST)?;
    let vfs = attributes(list).filter(|(kind, _)| *kind == IFLA_VF_INFO);
    let vfs = vfs.filter_map(|(_, infos)| administered(infos)).collect();
    Some((u32_at(link, LINK_INDEX_AT)?, vfs))
}

fn administered(infos: &[u8]) -> Option<(VfIndex, Administered)> {
    let mut vf = Administered { is_answered: true, ..Administered::default() };
    let mut index = None;
    for (kind, value) in attributes(infos) {
        let guid = || u64_at(value, GUID_AT).map(Guid::new);
        match kind {
            IFLA_VF_IB_NODE_GUID => vf.node_guid = guid(),
            IFLA_VF_IB_PORT_GUID => vf.port_guid = guid(),
            IFLA_VF_LINK_STATE => {
                let state = u32_at(value, 4);
                let policy = STATES.iter().find(|(s, _)| Some(*s) == state);
                vf.policy = policy.map(|(_, policy)| *policy);
            }
            _ => continue,
        }
        index = VfIndex::new(u16::try_from(u32_at(value, 0)?).ok()?);
    }
    Some((index?, vf))
}

/// Reads the messages of the kind `answer` alone.
fn only<T>(answer: u16, read: fn(&[u8]) -> Option<T>) -> impl FnMut(u16, &[u8]) -> Option<T> {
    move |kind, payload| (kind == answer).then(|| read(payload))?
}

/// The question for everything of one kind.
const fn list(kind: u16, payload: &[u8]) -> Question<'_> {
    Question { protocol: NETLINK_ROUTE, kind, flags: NLM_F_DUMP, payload }
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

/// An address of a netdev.
pub(super) struct Address {
    ifindex: u32,
    /// As `enum rt_scope_t` has it.
    scope: u8,
    flags: u8,
    /// IPv4 or IPv6.
    ip: Option<IpAddr>,
    prefix: u8,
}

pub(super) fn address_of(message: &[u8]) -> Option<Address> {
    let [_, prefix, flags, scope, ..] = *message else { return None };
    let attributes = after(message, ADDRESS_HEADER);
    // On a point-to-point link IFA_ADDRESS is the peer's.
    let ip = value_of(attributes, IFA_LOCAL).or_else(|| value_of(attributes, IFA_ADDRESS));
    Some(Address {
        ifindex: u32_at(message, 4)?,
        scope,
        flags,
        ip: ip.and_then(|ip| parse_ip(ip).ok()),
        prefix,
    })
}

/// The addresses that a peer can use: of global scope, and past duplicate
/// address detection; each with the index of its netdev and its prefix length.
///
/// # Errors
/// As [`administered_vfs`].
pub fn global_addresses() -> io::Result<Vec<(u32, IpAddr, u8)>> {
    let mut found = Vec::new();
    let addresses = list(RTM_GETADDR, &[0; ADDRESS_HEADER]);
    for address in addresses.ask(&mut only(RTM_NEWADDR, address_of))? {
        if address.scope == RT_SCOPE_UNIVERSE && u32::from(address.flags) & UNUSABLE == 0 {
            found.extend(address.ip.map(|ip| (address.ifindex, ip, address.prefix)));
        }
    }
    Ok(found)
}

/// One thing that a PF can set for a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VfSetting {
    NodeGuid(Guid),
    PortGuid(Guid),
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
    let mut payload = link_header(ifindex);
    payload.extend(attribute(IFLA_VFINFO_LIST, &attribute(IFLA_VF_INFO, &info(vf, setting))));
    let (kind, flags) = (RTM_SETLINK, NLM_F_ACK);
    Question { protocol: NETLINK_ROUTE, kind, flags, payload: &payload }.tell()
}

fn info(vf: VfIndex, setting: VfSetting) -> Vec<u8> {
    let mut value = u32::from(vf.get()).to_ne_bytes().to_vec();
    let guid = |mut value: Vec<u8>, guid: Guid| {
        value.resize(GUID_AT, 0);
        // A number, in this machine's byte order.
        value.extend(guid.value().to_ne_bytes());
        value
    };
    match setting {
        VfSetting::NodeGuid(node) => attribute(IFLA_VF_IB_NODE_GUID, &guid(value, node)),
        VfSetting::PortGuid(port) => attribute(IFLA_VF_IB_PORT_GUID, &guid(value, port)),
        VfSetting::Policy(policy) => {
            let state = STATES.iter().find(|(_, p)| *p == policy).map_or(0, |(state, _)| *state);
            value.extend(state.to_ne_bytes());
            attribute(IFLA_VF_LINK_STATE, &value)
        }
    }
}

/// What says that a netdev is used: addresses that reach further than the
/// link, and routes that the kernel did not make by itself; by its index.
///
/// # Errors
/// The socket fails, the kernel refuses, or addresses or routes changed each time while they
/// were read: one that was skipped would make a VF in use free.
pub fn net_uses() -> io::Result<Vec<(u32, String)>> {
    let mut uses = Vec::new();
    let addresses = list(RTM_GETADDR, &[0; ADDRESS_HEADER]);
    for address in addresses.ask_whole(&mut only(RTM_NEWADDR, address_of))? {
        if !NEAR.contains(&address.scope) {
            let ip = address.ip.map_or_else(|| "?".to_owned(), |ip| ip.to_string());
            uses.push((address.ifindex, format!("address {ip}/{}", address.prefix)));
        }
    }
    let routes = list(RTM_GETROUTE, &[0; ROUTE_HEADER]);
    uses.extend(routes.ask_whole(&mut only(RTM_NEWROUTE, route_of))?.into_iter().flatten());
    Ok(uses)
}

/// The netdevs that a route goes out by, if somebody made it.
pub(super) fn route_of(message: &[u8]) -> Option<Vec<(u32, String)>> {
    let [_, prefix, _, _, table, protocol, ..] = *message else { return None };
    if table == RT_TABLE_LOCAL || protocol == RTPROT_KERNEL {
        return None;
    }
    let attributes = after(message, ROUTE_HEADER);
    let to = value_of(attributes, RTA_DST).and_then(|ip| parse_ip(ip).ok());
    // The kernel's own for every IPv6 link, made as "boot" by older kernels.
    if matches!(to, Some(IpAddr::V6(ip)) if ip.is_unicast_link_local() || ip.is_multicast()) {
        return None;
    }
    let mut out: Vec<u32> =
        value_of(attributes, RTA_OIF).and_then(|v| u32_at(v, 0)).into_iter().collect();
    // `struct rtnexthop`, one after the other.
    let mut hops = value_of(attributes, RTA_MULTIPATH).unwrap_or_default();
    while let Some((length, index)) = u16_at(hops, 0).zip(u32_at(hops, 4)) {
        out.push(index);
        hops = hops.get(usize::from(length.max(8)).next_multiple_of(4)..).unwrap_or_default();
    }
    let to = to.map_or_else(|| "default".to_owned(), |to| format!("{to}/{prefix}"));
    Some(out.into_iter().map(|index| (index, format!("route to {to}"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_for_a_vf_is_read_back() {
        let vf = VfIndex::new(10).expect("index");
        let guid = Guid::new(0x0200_0070_0001_000a);
        let one = |setting| attribute(IFLA_VF_INFO, &info(vf, setting));
        let mut link = link_header(7);
        let mut list = one(VfSetting::PortGuid(guid));
        list.extend(one(VfSetting::Policy(Policy::Up)));
        link.extend(attribute(IFLA_VFINFO_LIST, &list));
        let answered = Administered { is_answered: true, ..Administered::default() };
        let port = Administered { port_guid: Some(guid), ..answered };
        let policy = Administered { policy: Some(Policy::Up), ..answered };
        assert_eq!(vfs_in(&link), Some((7, vec![(vf, port), (vf, policy)])));
        assert_eq!(vfs_in(&link_header(7)), None);
    }

    #[test]
    fn routes_of_the_kernel_and_of_links_are_no_use() {
        let route = |header: [u8; 12], to: &[u8], index: u32| {
            let mut route = header.to_vec();
            route.extend(attribute(RTA_DST, to));
            route.extend(attribute(RTA_OIF, &index.to_ne_bytes()));
            route_of(&route)
        };
        let to = [10, 1, 0, 0];
        // Family, prefix length, ..., table main, protocol static.
        let made = [2, 16, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0];
        assert_eq!(route(made, &to, 3), Some(vec![(3, "route to 10.1.0.0/16".to_owned())]));
        let own = [2, 16, 0, 0, 254, RTPROT_KERNEL, 253, 1, 0, 0, 0, 0];
        assert_eq!(route(own, &to, 3), None);
        let local = [2, 32, 0, 0, RT_TABLE_LOCAL, 4, 254, 2, 0, 0, 0, 0];
        assert_eq!(route(local, &to, 3), None);
        let link_local = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(route([10, 64, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0], &link_local, 3), None);
    }

    #[test]
    fn every_hop_of_a_route_counts() {
        let hop = |index: u32| {
            let mut hop = 16_u16.to_ne_bytes().to_vec();
            hop.extend([0, 0]);
            hop.extend(index.to_ne_bytes());
            // Its gateway.
            hop.extend(attribute(5, &[10, 0, 0, 1]));
            hop
        };
        let mut route = vec![2, 0, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0];
        route.extend(attribute(RTA_MULTIPATH, &[hop(3), hop(4)].concat()));
        let to = |index| (index, "route to default".to_owned());
        assert_eq!(route_of(&route), Some(vec![to(3), to(4)]));
    }

    #[test]
    fn the_local_address_of_a_point_to_point_link_is_told() {
        let mut message = vec![2, 32, 0x80, RT_SCOPE_UNIVERSE];
        message.extend(9_u32.to_ne_bytes());
        message.extend(attribute(IFA_ADDRESS, &[10, 0, 0, 2]));
        message.extend(attribute(IFA_LOCAL, &[10, 0, 0, 1]));
        let address = address_of(&message).expect("address");
        assert_eq!((address.ifindex, address.prefix), (9, 32));
        assert_eq!(address.ip, Some(IpAddr::from([10, 0, 0, 1])));
    }

    #[test]
    fn the_kernel_answers() {
        let local = |a: &Address| a.ip.is_some_and(|ip| ip.is_loopback());
        let any = list(RTM_GETADDR, &[0; ADDRESS_HEADER])
            .ask(&mut only(RTM_NEWADDR, address_of))
            .expect("addresses")
            .iter()
            .any(local);
        assert!(any, "lo has an address where tests run");
        net_uses().expect("uses");
        administered_vfs().expect("VFs");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _vfs = vfs_in(&bytes);
            let _address = address_of(&bytes);
            let _route = route_of(&bytes);
        }
    }
}
