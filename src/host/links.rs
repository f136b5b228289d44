//! Setting interfaces by rtnetlink, and their names.

use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::libc::{
    IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINK, IFLA_LINKINFO, IFLA_MTU, RTM_GETLINK,
    RTM_NEWLINK,
};

use super::Root;
use super::netlink::{LINK_HEADER, link_header};
use super::netlink_wire::{Question, after, attribute, text_attribute, text_of, u16_at, value_of};
use crate::names::{IfName, Mode, PKey, Target};

// What libc lacks of include/uapi/linux/if_link.h, nested in IFLA_INFO_DATA of IPoIB.
const IFLA_IPOIB_PKEY: u16 = 1;
const IFLA_IPOIB_MODE: u16 = 2;
const IFLA_IPOIB_UMCAST: u16 = 3;
const IPOIB_MODE_DATAGRAM: u16 = 0;
const IPOIB_MODE_CONNECTED: u16 = 1;
const IPOIB: &str = "ipoib";

/// Set the MTU of the interface with this index.
///
/// # Errors
/// The kernel refuses: EINVAL for an MTU that the link cannot have.
pub fn set_mtu(ifindex: u32, mtu: u32) -> io::Result<()> {
    change(ifindex, &attribute(IFLA_MTU, &mtu.to_ne_bytes()))
}

/// Give the interface with this index another name, which it takes only while it is
/// down (`dev_change_name()`, `net/core/dev.c`).
///
/// # Errors
/// EBUSY if it is up, EEXIST if the name is taken.
pub fn rename(ifindex: u32, name: &str) -> io::Result<()> {
    change(ifindex, &text_attribute(IFLA_IFNAME, name))
}

/// Set the transport mode of an IPoIB interface.
///
/// # Errors
/// The kernel refuses: EINVAL where the driver has no such mode.
pub fn set_mode(ifindex: u32, mode: Mode) -> io::Result<()> {
    let mode = match mode {
        Mode::Datagram => IPOIB_MODE_DATAGRAM,
        Mode::Connected => IPOIB_MODE_CONNECTED,
    };
    change(ifindex, &ipoib(IFLA_IPOIB_MODE, mode))
}

/// Let user space join multicast groups on its own, or not.
///
/// # Errors
/// The kernel refuses.
pub fn set_umcast(ifindex: u32, umcast: bool) -> io::Result<()> {
    change(ifindex, &ipoib(IFLA_IPOIB_UMCAST, umcast.into()))
}

/// Make a P_Key child of the interface with index `parent`.
///
/// One with the kernel's own name is made through the parent's file `create_child`, as the
/// network stacks do: only such a child has files `mode`, `umcast` and `pkey`
/// (`__ipoib_vlan_add()`, drivers/infiniband/ulp/ipoib/ipoib_vlan.c), and NetworkManager
/// activates no profile on one without `mode`.
///
/// # Errors
/// The kernel refuses: EEXIST if the name is taken, ENOTUNIQ if there is a child with this
/// P_Key.
pub fn add_child(parent: u32, name: &IfName, pkey: PKey) -> io::Result<()> {
    let own = name_of(parent).filter(|own| name.as_str() == format!("{own}.{:04x}", pkey.value()));
    if let Some(own) = own {
        let value = format!("{:#06x}", pkey.value());
        return super::attribute::write_of_netdev(&own, parent, "create_child", &value);
    }
    let mut attributes = attribute(IFLA_LINK, &parent.to_ne_bytes());
    attributes.extend(text_attribute(IFLA_IFNAME, name.as_str()));
    attributes.extend(ipoib(IFLA_IPOIB_PKEY, pkey.value()));
    new_link(0, &attributes, NLM_F_CREATE | NLM_F_EXCL)
}

/// The interface that each network namespace has first (LOOPBACK_IFINDEX,
/// include/linux/netdevice.h).
const LOOPBACK: u32 = 1;

/// The name of the interface with this index; `None` if it is not there.
pub fn name_of(ifindex: u32) -> Option<IfName> {
    nix::net::if_::if_indextoname(ifindex).ok()?.to_str().ok()?.parse().ok()
}

/// The own name of the netdev that has `name` as an alternative one (Linux 5.5 and later); of any
/// other, and in a copied tree, which shows none, it is `name` itself.
///
/// The kernel looks for both in each lookup by name. That for SO_BINDTODEVICE takes no RTNL lock
/// (`sock_setbindtodevice()`, net/core/sock.c), as a netlink request does, and loads no module of
/// that name, as SIOCGIFINDEX does (`dev_load()`, net/core/dev_ioctl.c).
pub fn own_name(root: &Root, name: &IfName) -> IfName {
    let looked_up = || {
        let socket =
            socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::DGRAM, None).ok()?;
        socket.bind_device(Some(name.as_str().as_bytes())).ok()?;
        String::from_utf8(socket.device().ok()??).ok()?.parse().ok()
    };
    root.is_live().then(looked_up).flatten().unwrap_or_else(|| name.clone())
}

/// `target`, a netdev by its own name. A name that is an RDMA device's too means that: rdma-core
/// gives one such as udev gives netdevs as alternative name (ibp7s0).
pub fn by_own_name(root: &Root, target: &Target) -> Target {
    match target {
        Target::Name(name) if !root.exists(&format!("/sys/class/infiniband/{name}")) => {
            Target::Name(own_name(root, name))
        }
        target => target.clone(),
    }
}

/// Mode and umcast of an IPoIB interface, for those that have no files for it.
///
/// # Errors
/// The kernel refuses, or there is no such interface.
pub fn ipoib_of(ifindex: u32) -> io::Result<(Option<Mode>, Option<bool>)> {
    let payload = link_header(ifindex);
    let question = Question {
        protocol: NETLINK_ROUTE,
        kind: RTM_GETLINK,
        flags: NLM_F_ACK,
        payload: &payload,
    };
    let mut read = |kind, link: &[u8]| if kind == RTM_NEWLINK { ipoib_in(link) } else { None };
    Ok(question.ask(&mut read)?.pop().unwrap_or_default())
}

/// Wait until the RTNL lock can be had. What had it until then is through: the registration of a
/// netdev, which shows nothing in sysfs before (`register_netdevice()`, net/core/dev.c; ib_ipoib
/// makes queue pairs meanwhile, `ipoib_ndo_init()`).
///
/// # Errors
/// The kernel cannot be asked.
pub fn wait_for_rtnl() -> io::Result<()> {
    // The kernel looks at a link with the lock held (`rtnl_getlink()`, net/core/rtnetlink.c).
    ipoib_of(LOOPBACK).map(drop)
}

/// Mode and umcast from a link's message, if it is an IPoIB interface.
pub(super) fn ipoib_in(link: &[u8]) -> Option<(Option<Mode>, Option<bool>)> {
    let info = value_of(after(link, LINK_HEADER), IFLA_LINKINFO)?;
    if text_of(value_of(info, IFLA_INFO_KIND)?) != IPOIB {
        return None;
    }
    let data = value_of(info, IFLA_INFO_DATA)?;
    let number = |kind| value_of(data, kind).and_then(|value| u16_at(value, 0));
    let mode = match number(IFLA_IPOIB_MODE) {
        Some(IPOIB_MODE_DATAGRAM) => Some(Mode::Datagram),
        Some(IPOIB_MODE_CONNECTED) => Some(Mode::Connected),
        _ => None,
    };
    Some((mode, number(IFLA_IPOIB_UMCAST).map(|n| n != 0)))
}

fn ipoib(kind: u16, value: u16) -> Vec<u8> {
    let mut info = attribute(IFLA_INFO_KIND, IPOIB.as_bytes());
    info.extend(attribute(IFLA_INFO_DATA, &attribute(kind, &value.to_ne_bytes())));
    attribute(IFLA_LINKINFO, &info)
}

fn change(ifindex: u32, attributes: &[u8]) -> io::Result<()> {
    // RTM_NEWLINK changes what is there when it may not create.
    new_link(ifindex, attributes, 0)
}

fn new_link(ifindex: u32, attributes: &[u8], flags: u16) -> io::Result<()> {
    let mut payload = link_header(ifindex);
    payload.extend(attributes);
    let (kind, flags) = (RTM_NEWLINK, NLM_F_ACK | flags);
    Question { protocol: NETLINK_ROUTE, kind, flags, payload: &payload }.tell()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::host::testing::{in_own_network, tree};

    #[test]
    fn mode_and_umcast_are_read_from_a_link() {
        let mut link = link_header(3);
        link.extend(attribute(IFLA_IFNAME, b"ib0\0"));
        let mut data = attribute(IFLA_IPOIB_PKEY, &0x8001_u16.to_ne_bytes());
        data.extend(attribute(IFLA_IPOIB_MODE, &IPOIB_MODE_CONNECTED.to_ne_bytes()));
        data.extend(attribute(IFLA_IPOIB_UMCAST, &1_u16.to_ne_bytes()));
        let mut info = attribute(IFLA_INFO_KIND, b"ipoib\0");
        info.extend(attribute(IFLA_INFO_DATA, &data));
        link.extend(attribute(IFLA_LINKINFO, &info));
        assert_eq!(ipoib_in(&link), Some((Some(Mode::Connected), Some(true))));
        assert_eq!(ipoib_in(&link_header(3)), None);
    }

    /// Give the loopback this alternative name, as `ip link property add` does.
    pub(crate) fn give_altname(name: &str) {
        const RTM_NEWLINKPROP: u16 = 108;
        const IFLA_PROP_LIST: u16 = 52 | 0x8000;
        const IFLA_ALT_IFNAME: u16 = 53;
        let name = attribute(IFLA_ALT_IFNAME, format!("{name}\0").as_bytes());
        let mut payload = link_header(LOOPBACK);
        payload.extend(attribute(IFLA_PROP_LIST, &name));
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        let (protocol, kind) = (NETLINK_ROUTE, RTM_NEWLINKPROP);
        Question { protocol, kind, flags, payload: &payload }.tell().expect("Linux 5.5");
    }

    #[test]
    fn an_alternative_name_is_that_of_its_netdev() {
        in_own_network(|| {
            give_altname("ibp7s0");
            let root = Root::live();
            let own = |name: &str| own_name(&root, &name.parse().expect("name")).to_string();
            assert_eq!(["ibp7s0", "lo", "ibp7s1"].map(own), ["lo", "lo", "ibp7s1"]);
            let by_own = |target: &str| by_own_name(&root, &target.parse().expect("target"));
            assert_eq!(by_own("ibp7s0").to_string(), "lo");
            assert_eq!(by_own("4b:00.0/1").to_string(), "0000:4b:00.0/1");
            let copy = tree(&[], &[]);
            let copy = Root::copy_at(copy.path()).expect("root");
            assert_eq!(own_name(&copy, &"ibp7s0".parse().expect("name")).as_str(), "ibp7s0");
        });
    }

    #[test]
    fn what_the_kernel_refuses_is_told() {
        // Index 1 is the loopback of this namespace, which is no IPoIB interface.
        let e = set_mtu(u32::MAX >> 1, 1500).expect_err("no such interface");
        assert_eq!(e.raw_os_error(), Some(nix::libc::ENODEV));
        assert_eq!(ipoib_of(1).expect("lo"), (None, None));
    }
}
