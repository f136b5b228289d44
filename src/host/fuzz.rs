//! The doors of `fuzz/` to the parsers that no other room calls.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::libc::{MSG_PEEK, MSG_TRUNC};

use super::{KernelLine, UdevEvent, kernel_log, links, netlink, netlink_wire, rdma_netlink};
use super::{systemctl, udev};

/// A record of `/dev/kmsg`.
pub fn kernel_line(record: &[u8]) -> Option<KernelLine> {
    kernel_log::parse(&String::from_utf8_lossy(record))
}

/// An event of udev's, as libudev hands out its parts.
pub fn uevent(
    action: Option<&[u8]>,
    subsystem: Option<&[u8]>,
    devpath: &[u8],
) -> Option<UdevEvent> {
    let text = |bytes| OsStr::from_bytes(bytes);
    udev::told(action.map(text), subsystem.map(text), text(devpath))
}

/// What systemctl prints of units and of jobs.
pub fn systemctl(text: &str) {
    let units = systemctl::parse_units(&["a.service", "b.service"], text);
    assert!(units.is_none_or(|units| units.len() == 2), "as many answers as questions");
}

/// One datagram of the kernel's, then none: every reader gets every message. How many
/// messages there were.
pub fn netlink(datagram: &[u8]) -> Option<usize> {
    let mut given = false;
    let mut receive = |buffer: &mut Vec<u8>, flags: i32| {
        if given {
            return Err(io::Error::from(Errno::EAGAIN));
        }
        given = flags & MSG_PEEK == 0;
        let fits = datagram.len().min(buffer.capacity() - buffer.len());
        buffer.extend_from_slice(datagram.get(..fits).unwrap_or_default());
        Ok(if flags & MSG_TRUNC == 0 { fits } else { datagram.len() })
    };
    let mut read = |_, message: &[u8]| {
        let _vfs = netlink::vfs_in(message);
        let _address = netlink::address_of(message);
        let _route = netlink::route_of(message);
        let _netns_mode = rdma_netlink::mode_in(message);
        let _mode = links::ipoib_in(message);
        let _qps = rdma_netlink::entries(message, &rdma_netlink::qp);
        let _cm_ids = rdma_netlink::entries(message, &rdma_netlink::cm_id);
        Some(())
    };
    netlink_wire::answers(&mut receive, &mut read).ok().map(|answers| answers.read.len())
}
