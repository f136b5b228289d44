//! Setting interfaces by rtnetlink, and hearing of their changes. With
//! [`super::netlink`] the only file that knows the packet crates.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoIpoib, InfoKind, IpoibMode, LinkAttribute, LinkInfo, LinkMessage,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::clock;
use crate::config::Mode;
use crate::names::{IfName, PKey};

/// Set the MTU of the interface with this index.
///
/// # Errors
/// The kernel refuses: EINVAL for an MTU that the link cannot have.
pub fn set_mtu(ifindex: u32, mtu: u32) -> io::Result<()> {
    change(ifindex, vec![LinkAttribute::Mtu(mtu)])
}

/// Set the transport mode of an IPoIB interface.
///
/// # Errors
/// The kernel refuses: EINVAL where the driver has no such mode.
pub fn set_mode(ifindex: u32, mode: Mode) -> io::Result<()> {
    let mode = match mode {
        Mode::Datagram => IpoibMode::Datagram,
        Mode::Connected => IpoibMode::Connected,
    };
    change(ifindex, ipoib(vec![InfoIpoib::Mode(mode)]))
}

/// Let user space join multicast groups on its own, or not.
///
/// # Errors
/// The kernel refuses.
pub fn set_umcast(ifindex: u32, umcast: bool) -> io::Result<()> {
    change(ifindex, ipoib(vec![InfoIpoib::UmCast(umcast.into())]))
}

/// Make a P_Key child of the interface with index `parent`.
///
/// # Errors
/// The kernel refuses: EEXIST if the name is taken.
pub fn add_child(parent: u32, name: &IfName, pkey: PKey) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::Link(parent));
    message.attributes.push(LinkAttribute::IfName(name.as_str().to_owned()));
    message.attributes.extend(ipoib(vec![InfoIpoib::Pkey(pkey.value())]));
    request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// Mode and umcast of an IPoIB interface, for those that have no files for it.
///
/// # Errors
/// The kernel refuses, or there is no such interface.
pub fn ipoib_of(ifindex: u32) -> io::Result<(Option<Mode>, Option<bool>)> {
    let mut message = LinkMessage::default();
    message.header.index = ifindex;
    let mut found = (None, None);
    exchange(RouteNetlinkMessage::GetLink(message), 0, |answer| {
        let RouteNetlinkMessage::NewLink(link) = answer else { return };
        let infos = link.attributes.iter().filter_map(|a| match a {
            LinkAttribute::LinkInfo(infos) => Some(infos),
            _ => None,
        });
        for info in infos.flatten() {
            let LinkInfo::Data(InfoData::Ipoib(data)) = info else { continue };
            for datum in data {
                match datum {
                    InfoIpoib::Mode(IpoibMode::Datagram) => found.0 = Some(Mode::Datagram),
                    InfoIpoib::Mode(IpoibMode::Connected) => found.0 = Some(Mode::Connected),
                    InfoIpoib::UmCast(n) => found.1 = Some(*n != 0),
                    _ => {}
                }
            }
        }
    })?;
    Ok(found)
}

fn ipoib(data: Vec<InfoIpoib>) -> Vec<LinkAttribute> {
    let info = vec![LinkInfo::Kind(InfoKind::Ipoib), LinkInfo::Data(InfoData::Ipoib(data))];
    vec![LinkAttribute::LinkInfo(info)]
}

fn change(ifindex: u32, attributes: Vec<LinkAttribute>) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = ifindex;
    message.attributes = attributes;
    // RTM_NEWLINK changes what is there when it may not create.
    request(RouteNetlinkMessage::NewLink(message), 0)
}

fn request(message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    exchange(message, flags, |_| {})
}

/// Send one request and take what comes until the kernel's acknowledgement.
fn exchange(
    message: RouteNetlinkMessage,
    flags: u16,
    mut each: impl FnMut(&RouteNetlinkMessage),
) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut packet = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(message));
    packet.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
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
                // Code 0 is the acknowledgement.
                NetlinkPayload::Error(e) if e.code.is_none() => return Ok(()),
                NetlinkPayload::Error(e) => return Err(e.to_io()),
                NetlinkPayload::InnerMessage(inner) => each(inner),
                _ => {}
            }
            // Messages are aligned to 4 bytes (NLMSG_ALIGN).
            let length = usize::try_from(message.header.length.next_multiple_of(4));
            match length {
                Ok(length @ 1..) => rest = rest.get(length..).unwrap_or_default(),
                _ => break,
            }
        }
    }
}

/// Hears when links or addresses change.
#[derive(Debug)]
pub struct LinkWatch(Socket);

/// RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR
/// (`include/uapi/linux/rtnetlink.h`).
const GROUPS: [u32; 3] = [1, 5, 9];

impl LinkWatch {
    /// Begin to listen.
    ///
    /// # Errors
    /// No netlink socket can be opened.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        for group in GROUPS {
            socket.add_membership(group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(Self(socket))
    }

    /// Wait until something has changed; false at `until_usec` of
    /// CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// poll fails.
    pub fn wait(&mut self, until_usec: u64) -> io::Result<bool> {
        let left = until_usec.saturating_sub(clock::monotonic_usec());
        let millis = i32::try_from(left.div_ceil(1000)).unwrap_or(i32::MAX);
        let timeout = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => return Ok(false),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        // What it was does not matter, and an overrun (ENOBUFS) is a change.
        let mut buffer = [0_u8; 16 * 1024];
        while nix::sys::socket::recv(
            self.0.as_raw_fd(),
            &mut buffer,
            nix::sys::socket::MsgFlags::MSG_DONTWAIT,
        )
        .is_ok_and(|n| n > 0)
        {}
        Ok(true)
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
