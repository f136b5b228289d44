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
use nix::errno::Errno;
use nix::libc::{RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR, RTMGRP_LINK};
use nix::poll::{PollFd, PollFlags, poll};

use super::clock;

const GROUPS: u32 = (RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR).cast_unsigned();

/// Changes of links and addresses, as they happen.
pub struct LinkEvents {
    socket: Socket,
}

impl std::fmt::Debug for LinkEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinkEvents").finish_non_exhaustive()
    }
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

    /// Wait until something has changed; false at `until_usec` of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// poll or the socket fails.
    pub fn wait(&self, until_usec: u64) -> io::Result<bool> {
        let fd = PollFd::new(self.as_fd(), PollFlags::POLLIN);
        match poll(&mut [fd], clock::poll_timeout(until_usec)) {
            Ok(0) => return Ok(false),
            // After a signal the caller looks again.
            Ok(_) | Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
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

impl AsFd for LinkEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
