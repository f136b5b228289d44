//! The kernel's word that a link or an address has changed (rtnetlink).
//!
//! For a port of an RDMA device the kernel has no such event: neither a uevent
//! nor RDMA netlink's monitor groups tell of a port's logical state
//! (`enum rdma_nl_notify_event_type`, `include/uapi/rdma/rdma_netlink.h`). What
//! it does tell is the carrier of the port's IPoIB netdev, once that is up:
//! `ipoib_mcast_carrier_on_task()` turns it on when the port is Active and the
//! broadcast group is joined, a port error turns it off.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
use nix::libc::{RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR, RTMGRP_LINK};
use socket2::{SockFilter, SockRef};

use super::clock;
use crate::names::Moment;

const GROUPS: u32 = (RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR).cast_unsigned();

/// Changes of links and addresses, as they happen.
#[derive(Debug)]
pub struct LinkEvents {
    socket: Socket,
}

impl LinkEvents {
    /// Listen. To miss nothing, do so before the first look.
    ///
    /// # Errors
    /// No netlink socket can be opened.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, GROUPS))?;
        socket.set_non_blocking(true)?;
        Ok(Self { socket })
    }

    /// Listen for one interface alone. Where many interfaces come at once and each has somebody
    /// who waits for it, those would wake each other otherwise.
    ///
    /// # Errors
    /// As [`LinkEvents::open`]; the kernel takes no filter.
    pub fn of(ifindex: u32) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        // Before it is a member of the groups: nothing else gets in.
        SockRef::from(&socket).attach_filter(&only(ifindex))?;
        socket.bind(&SocketAddr::new(0, GROUPS))?;
        socket.set_non_blocking(true)?;
        Ok(Self { socket })
    }

    /// Wait until something has changed; false at `until`, or after a
    /// signal.
    ///
    /// # Errors
    /// poll or the socket fails.
    pub fn wait(&self, until: Moment) -> io::Result<bool> {
        // A signal is of no link: each thread gets some, of processes that others have started.
        if !clock::readable(&[self.as_fd()], until)?.contains(&true) {
            return Ok(false);
        }
        self.drain()?;
        Ok(true)
    }

    /// True if anything has changed since the last call. What it was is not
    /// read: the host is looked at anyway.
    ///
    /// # Errors
    /// The socket fails.
    pub fn drain(&self) -> io::Result<bool> {
        let mut any = false;
        // Datagrams are cut to what fits: their content is of no interest.
        let mut datagram = Vec::with_capacity(64);
        loop {
            datagram.clear();
            match self.socket.recv(&mut datagram, 0) {
                Ok(_) => any = true,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(any),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // More came than the socket could hold: something has changed.
                Err(e) if e.raw_os_error() == Some(nix::libc::ENOBUFS) => any = true,
                Err(e) => return Err(e),
            }
        }
    }
}

/// Where a message of a link (`struct ifinfomsg`) and one of an address (`struct
/// ifaddrmsg`) alike have the interface's index, octets after the message's begin.
const INDEX_AT: u32 = 20;

/// The filter that lets messages about the interface with this index pass
/// (`Documentation/networking/filter.rst`). It reads numbers in network order.
fn only(ifindex: u32) -> [SockFilter; 4] {
    // Operation codes have 16 bits, and all of these are small.
    let code = |bits: u32| u16::try_from(bits).unwrap_or_default();
    let index = u32::from_be_bytes(ifindex.to_ne_bytes());
    [
        SockFilter::new(code(BPF_LD | BPF_W | BPF_ABS), 0, 0, INDEX_AT),
        SockFilter::new(code(BPF_JMP | BPF_JEQ | BPF_K), 0, 1, index),
        SockFilter::new(code(BPF_RET | BPF_K), 0, 0, u32::MAX),
        SockFilter::new(code(BPF_RET | BPF_K), 0, 0, 0),
    ]
}

impl AsFd for LinkEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::host::links;

    #[test]
    fn events_of_another_interface_are_not_heard() {
        let alone = std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("tests run as root");
            let own = LinkEvents::of(1).expect("socket");
            let other = LinkEvents::of(2).expect("socket");
            let any = LinkEvents::open().expect("socket");
            links::set_mtu(1, 1400).expect("the loopback of a namespace of its own");
            assert!(any.wait(clock::now() + Duration::from_secs(60)).expect("wait"));
            assert!(own.drain().expect("socket"));
            assert!(!other.drain().expect("socket"));
        });
        alone.join().expect("thread");
    }
}
