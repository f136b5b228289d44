//! Device events, as udevd sends them on once it has processed them, and as the
//! kernel sends them first.
//!
//! Read without libudev: it would be the one library that keeps the program from
//! being linked statically, and half of the time in which it starts. The form of
//! udevd's messages cannot change, since libudevs of containers read the host's
//! (systemd, `src/libsystemd/sd-device/device-monitor.c`).

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_KOBJECT_UEVENT};

/// The group that the kernel sends to (`MONITOR_GROUP_KERNEL`).
const GROUP_KERNEL: u32 = 1;
/// The group that udevd sends to (`MONITOR_GROUP_UDEV`).
const GROUP_UDEV: u32 = 2;

/// How a message of udevd begins: `monitor_netlink_header` with its prefix and
/// its magic number, which is in network byte order.
const PREFIX: &[u8] = b"libudev\0\xfe\xed\xca\xfe";
/// Where its header has offset and length of the properties, in host byte order.
const PROPERTIES: usize = 16;

/// The subsystems that something is made of.
const SUBSYSTEMS: [&str; 4] = ["pci", "net", "infiniband", "auxiliary"];

/// No event is longer: the kernel has 2 KiB for its properties (`UEVENT_BUFFER_SIZE`,
/// `include/linux/kobject.h`), and udevd sends no more than 8 KiB to anybody.
const LONGEST: usize = 16 * 1024;

/// What happened to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdevEvent {
    /// `add`, `move`, `bind`, `remove` ...
    pub action: String,
    /// `pci`, `net`, `infiniband` or `auxiliary`.
    pub subsystem: String,
    /// The device's name: `0000:4b:00.0`, `ib0`.
    pub sysname: String,
}

/// What has come since the last call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drained {
    /// The events.
    pub events: Vec<UdevEvent>,
    /// More came than the socket could hold: some are missing.
    pub overrun: bool,
}

/// The stream of events that udevd has processed. The kernel's own events
/// come up to half a second earlier, with names that do not last.
pub struct UdevMonitor {
    socket: Socket,
    group: u32,
}

impl std::fmt::Debug for UdevMonitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UdevMonitor").finish_non_exhaustive()
    }
}

impl UdevMonitor {
    /// Listen. To miss nothing, do so before the first look at sysfs.
    ///
    /// With no udevd running this succeeds and stays silent for ever.
    ///
    /// # Errors
    /// No netlink socket can be opened.
    pub fn open() -> io::Result<Self> {
        Self::listen(GROUP_UDEV)
    }

    /// Listen to the kernel itself: earlier, without udevd too, and with names
    /// that may not last.
    ///
    /// # Errors
    /// As [`UdevMonitor::open`].
    pub fn open_unprocessed() -> io::Result<Self> {
        Self::listen(GROUP_KERNEL)
    }

    fn listen(group: u32) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_KOBJECT_UEVENT)?;
        socket.bind(&SocketAddr::new(0, group))?;
        socket.set_non_blocking(true)?;
        Ok(Self { socket, group })
    }

    /// The events that have come since the last call.
    ///
    /// # Errors
    /// The socket fails.
    pub fn drain(&self) -> io::Result<Drained> {
        let mut drained = Drained::default();
        let mut message = Vec::with_capacity(LONGEST);
        loop {
            message.clear();
            match self.socket.recv_from(&mut message, 0) {
                Ok((_, sender)) => drained.events.extend(self.understand(&message, sender)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(drained),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.raw_os_error() == Some(nix::libc::ENOBUFS) => drained.overrun = true,
                Err(e) => return Err(e),
            }
        }
    }

    /// Only who has CAP_NET_ADMIN here may send to others (`netlink_sendmsg()`,
    /// `net/netlink/af_netlink.c`), and nobody but the kernel has the number 0.
    fn understand(&self, message: &[u8], sender: SocketAddr) -> Option<UdevEvent> {
        let from_kernel = sender.port_number() == 0;
        match self.group {
            GROUP_KERNEL if from_kernel => of_kernel(message),
            GROUP_UDEV if !from_kernel => of_udevd(message),
            _ => None,
        }
    }
}

impl AsFd for UdevMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// `ACTION@DEVPATH`, then the properties (`kobject_uevent_env()`, `lib/kobject_uevent.c`).
fn of_kernel(message: &[u8]) -> Option<UdevEvent> {
    let end = message.iter().position(|b| *b == 0)?;
    event(message.get(end + 1..)?)
}

fn of_udevd(message: &[u8]) -> Option<UdevEvent> {
    let number = |at: usize| {
        let bytes = message.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_ne_bytes(bytes)).ok()
    };
    if !message.starts_with(PREFIX) {
        return None;
    }
    let (begin, length) = (number(PROPERTIES)?, number(PROPERTIES + 4)?);
    event(message.get(begin..begin.checked_add(length)?)?)
}

/// An event by its properties: `KEY=VALUE`, each ended by a zero byte.
fn event(properties: &[u8]) -> Option<UdevEvent> {
    let (mut action, mut subsystem, mut path) = (None, None, None);
    for property in properties.split(|b| *b == 0) {
        let Some((key, value)) = std::str::from_utf8(property).ok().and_then(|p| p.split_once('='))
        else {
            continue;
        };
        match key {
            "ACTION" => action = Some(value),
            "SUBSYSTEM" => subsystem = Some(value),
            "DEVPATH" => path = Some(value),
            _ => {}
        }
    }
    let subsystem = subsystem.filter(|s| SUBSYSTEMS.contains(s))?;
    // The kernel writes a slash in a name as `!` where the name is a path's part.
    let sysname = path?.rsplit('/').next()?.replace('!', "/");
    Some(UdevEvent { action: action?.to_owned(), subsystem: subsystem.to_owned(), sysname })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ADDED: &[u8] =
        b"ACTION=add\0DEVPATH=/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0\0\
        SUBSYSTEM=infiniband\0NAME=mlx5_0\0SEQNUM=1417\0";

    fn added() -> Option<UdevEvent> {
        let [action, subsystem, sysname] = ["add", "infiniband", "mlx5_0"].map(str::to_owned);
        Some(UdevEvent { action, subsystem, sysname })
    }

    /// As udevd sends it: header of 40 bytes, then the properties.
    fn by_udevd(properties: &[u8]) -> Vec<u8> {
        let mut message = PREFIX.to_vec();
        for number in [40, 40, u32::try_from(properties.len()).expect("length"), 0, 0, 0, 0] {
            message.extend(number.to_ne_bytes());
        }
        message.extend(properties);
        message
    }

    #[test]
    fn the_kernels_and_udevds_message_tell_the_same() {
        let path = b"add@/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0\0";
        assert_eq!(of_kernel(&[path, ADDED].concat()), added());
        assert_eq!(of_udevd(&by_udevd(ADDED)), added());
        // One is never taken for the other.
        assert_eq!(of_udevd(&[path, ADDED].concat()), None);
    }

    #[test]
    fn what_lies_outside_the_message_is_no_event() {
        let mut message = by_udevd(ADDED);
        message[PROPERTIES..PROPERTIES + 4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(of_udevd(&message), None);
        assert_eq!(of_udevd(&by_udevd(ADDED)[..60]), None);
    }

    #[test]
    fn other_subsystems_are_not_heard() {
        let block = b"ACTION=add\0DEVPATH=/devices/virtual/block/loop0\0SUBSYSTEM=block\0";
        assert_eq!(of_udevd(&by_udevd(block)), None);
    }

    proptest! {
        #[test]
        fn no_message_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            of_kernel(&bytes);
            of_udevd(&bytes);
            of_udevd(&by_udevd(&bytes));
        }
    }
}
