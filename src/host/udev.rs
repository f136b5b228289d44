//! Device events, as udevd sends them on once it has processed them, and as the
//! kernel sends them first: libudev's monitor (libudev(3), systemd's
//! `src/libudev/libudev-monitor.c` and `src/libsystemd/sd-device/device-monitor.c`),
//! since the form of udevd's messages is private to systemd.
//!
//! What is relied on, beside the manual pages, as read in systemd 252 and 257:
//! - `udev_monitor_receive_device()` opens no file. A device that came as a message is
//!   sealed (`device_verify()`, `device-private.c`): what the message has not told is
//!   not looked up in its `uevent` file. Some kernels take the device's lock for that
//!   file, which a driver that sleeps in its probe or removal holds: Linux 6.10 and
//!   stable kernels of 2024 and early 2025 (`drivers: core: synchronize really_probe()
//!   and dev_uevent()`, reverted in 6.15). So nothing is asked of an event's device but
//!   action, subsystem and path, and libudev is never asked for a PCI function or an
//!   auxiliary device by name.
//! - Where it gives no device, errno says why; the manual does not tell, the functions
//!   do (`return_with_errno()`).
//! - Without `/run/udev/control`, and where `/dev` is not the kernel's own (in a
//!   container), the monitor of udevd's events never hears any.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use nix::errno::Errno;
use udev::{MonitorBuilder, MonitorSocket};

/// The subsystems that something is made of.
const SUBSYSTEMS: [&str; 4] = ["pci", "net", "infiniband", "auxiliary"];

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
    pub events: Vec<UdevEvent>,
    /// More came than the socket could hold, or what libudev cannot read: some are
    /// missing.
    pub overrun: bool,
}

/// The stream of events that udevd has processed. The kernel's own events
/// come up to half a second earlier, with names that do not last.
pub struct UdevMonitor {
    socket: MonitorSocket,
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
        Self::listen(MonitorBuilder::new()?)
    }

    /// Listen to the kernel itself: earlier, without udevd too, and with names
    /// that may not last.
    ///
    /// # Errors
    /// As [`UdevMonitor::open`].
    pub fn open_unprocessed() -> io::Result<Self> {
        Self::listen(MonitorBuilder::new_kernel()?)
    }

    fn listen(everything: MonitorBuilder) -> io::Result<Self> {
        let ours = SUBSYSTEMS.iter().try_fold(everything, MonitorBuilder::match_subsystem)?;
        Ok(Self { socket: ours.listen()? })
    }

    /// The events that have come since the last call. Some may be left to the next
    /// one, and the descriptor stays readable then.
    ///
    /// # Errors
    /// The socket fails.
    pub fn drain(&self) -> io::Result<Drained> {
        let mut drained = Drained::default();
        let mut received = self.socket.iter();
        loop {
            if let Some(event) = received.next() {
                drained.events.extend(told(event.action(), event.subsystem(), event.devpath()));
                continue;
            }
            // The iterator ends in the same way for a queue that is empty and for one
            // that has overflowed; errno is still that of libudev's call. Not SO_ERROR:
            // to read it takes the error away, and what overflows between that and the
            // call is told by errno alone. The kernel tells of an overflow before the
            // messages that it has kept (`__skb_try_recv_datagram()`, net/core/datagram.c),
            // so they are still to come.
            match Errno::last() {
                // Or a message from somebody else, which is passed over. What may lie
                // behind it wakes the next poll.
                Errno::EAGAIN => return Ok(drained),
                Errno::EINTR => {}
                Errno::ENOBUFS => drained.overrun = true,
                // A message that libudev cannot read: of what it told is not known.
                // Back to the caller, who knows the deadline.
                Errno::EINVAL => return Ok(Drained { overrun: true, ..drained }),
                failed => return Err(failed.into()),
            }
        }
    }
}

impl AsFd for UdevMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An event; `None` for one with a name that is not UTF-8, as nothing that ibprov looks
/// for has. The name is taken from the path as libudev does it, because where libudev
/// finds none (`/devices/..`) the crate's `sysname()` follows a null pointer.
pub(super) fn told(
    action: Option<&OsStr>,
    subsystem: Option<&OsStr>,
    devpath: &OsStr,
) -> Option<UdevEvent> {
    let text = |value: Option<&OsStr>| value?.to_str().map(str::to_owned);
    // The kernel writes a slash in a name as `!` where the name is a path's part.
    let sysname = text(Path::new(devpath).file_name())?.replace('!', "/");
    Some(UdevEvent { action: text(action)?, subsystem: text(subsystem)?, sysname })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "tests make events")]

    use std::fs;

    use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_KOBJECT_UEVENT};
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
    use nix::sys::socket::{setsockopt, sockopt::RcvBuf};
    use proptest::prelude::*;

    use super::*;
    use crate::host::testing::in_own_network;

    fn event(action: &str, subsystem: &str, sysname: &str) -> UdevEvent {
        let [action, subsystem, sysname] = [action, subsystem, sysname].map(str::to_owned);
        UdevEvent { action, subsystem, sysname }
    }

    fn heard(events: &[UdevEvent]) -> Drained {
        Drained { events: events.to_vec(), overrun: false }
    }

    /// Have the kernel tell of the loopback netdev.
    fn change_lo() {
        fs::write("/sys/class/net/lo/uevent", "change").expect("uevent of lo");
    }

    fn sender() -> Socket {
        Socket::new(NETLINK_KOBJECT_UEVENT).expect("netlink socket")
    }

    /// Have the kernel send `message`, with a sequence number put behind it, to the
    /// listeners of this network namespace, as one of its own (Linux 4.18,
    /// `uevent_net_broadcast()`, lib/kobject_uevent.c).
    fn send_as_kernel(message: &[u8]) {
        let length = u32::try_from(16 + message.len()).expect("length");
        // struct nlmsghdr: a request, of a type that is not the protocol's own.
        let mut request = length.to_ne_bytes().to_vec();
        request.extend([16_u16, 1].map(u16::to_ne_bytes).concat());
        request.extend([0; 8]);
        request.extend(message);
        sender().send_to(&request, &SocketAddr::new(0, 0), 0).expect("request");
    }

    /// As the kernel's own messages are: what happened and where, then the properties.
    fn kernel_message(action: &str, devpath: &[u8], subsystem: &str) -> Vec<u8> {
        let path = devpath.to_vec();
        let mut message = [action.as_bytes(), b"@", &path].concat();
        for (key, value) in
            [("ACTION", action.as_bytes()), ("DEVPATH", &path), ("SUBSYSTEM", subsystem.as_bytes())]
        {
            message.extend([b"\0", key.as_bytes(), b"=", value].concat());
        }
        message.push(0);
        message
    }

    fn send(action: &str, devpath: &[u8], subsystem: &str) {
        send_as_kernel(&kernel_message(action, devpath, subsystem));
    }

    #[test]
    fn what_happens_to_our_subsystems_is_heard() {
        in_own_network(|| {
            let monitor = UdevMonitor::open_unprocessed().expect("monitor");
            change_lo();
            fs::write("/sys/class/mem/null/uevent", "change").expect("uevent of null");
            send("bind", b"/devices/pci0000:00/0000:00:02.0", "pci");
            send("add", b"/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0", "infiniband");
            send("remove", b"/devices/pci0000:00/0000:00:02.0/mlx5_core.rdma.0", "auxiliary");
            send("move", b"/devices/virtual/net/a!b", "net");
            let events = [
                event("change", "net", "lo"),
                event("bind", "pci", "0000:00:02.0"),
                event("add", "infiniband", "mlx5_0"),
                event("remove", "auxiliary", "mlx5_core.rdma.0"),
                event("move", "net", "a/b"),
            ];
            assert_eq!(monitor.drain().expect("drain"), heard(&events));
            assert_eq!(monitor.drain().expect("drain"), Drained::default());
        });
    }

    /// Without the overrun, who waits for a device whose event was dropped would wait
    /// until its deadline.
    #[test]
    fn an_overrun_is_told_and_the_rest_is_read() {
        in_own_network(|| {
            let monitor = UdevMonitor::open_unprocessed().expect("monitor");
            // The kernel makes it its least, 2 KiB and a bit, which is a message or two.
            setsockopt(&monitor, RcvBuf, &1).expect("SO_RCVBUF");
            (0..100).for_each(|_| change_lo());
            let drained = monitor.drain().expect("drain");
            assert!(drained.overrun);
            assert!((1..100).contains(&drained.events.len()), "{drained:?}");
            change_lo();
            let afterwards = monitor.drain().expect("drain");
            assert_eq!(afterwards, heard(&[event("change", "net", "lo")]));
        });
    }

    /// An event of a PCI function that has the path of a netdev, so that reading any of
    /// the function's files would be seen, whatever the machine has on its buses.
    #[test]
    fn to_hear_of_a_device_opens_none_of_its_files() {
        in_own_network(|| {
            let monitor = UdevMonitor::open_unprocessed().expect("monitor");
            change_lo();
            send("bind", b"/devices/virtual/net/lo", "pci");
            let opened = Inotify::init(InitFlags::IN_NONBLOCK).expect("inotify");
            opened.add_watch("/sys/class/net/lo", AddWatchFlags::IN_OPEN).expect("watch");
            let events = [event("change", "net", "lo"), event("bind", "pci", "lo")];
            assert_eq!(monitor.drain().expect("drain"), heard(&events));
            assert_eq!(opened.read_events().expect_err("a file was opened"), Errno::EAGAIN);
            fs::read("/sys/class/net/lo/uevent").expect("uevent of lo");
            assert_eq!(opened.read_events().expect("events").len(), 1);
        });
    }

    #[test]
    fn a_message_that_cannot_be_read_is_one_that_is_missing() {
        in_own_network(|| {
            let monitor = UdevMonitor::open_unprocessed().expect("monitor");
            for message in [
                &b"x\0y"[..],
                b"add@/devices/x\0ACTION=add\0DEVPATH=/devices/x\0no property\0",
                b"add@/devices/x\0ACTION=add\0SUBSYSTEM=net\0SOMETHING=else\0",
                b"eat@/devices/x\0ACTION=eat\0DEVPATH=/devices/x\0SUBSYSTEM=net\0",
            ] {
                send_as_kernel(message);
                change_lo();
                let text = String::from_utf8_lossy(message);
                let drained = monitor.drain().expect("drain");
                assert_eq!(drained, Drained { overrun: true, events: Vec::new() }, "{text}");
                let next = monitor.drain().expect("drain");
                assert_eq!(next, heard(&[event("change", "net", "lo")]), "{text}");
            }
        });
    }

    #[test]
    fn others_than_the_kernel_are_not_believed() {
        in_own_network(|| {
            let monitor = UdevMonitor::open_unprocessed().expect("monitor");
            let message = kernel_message("add", b"/devices/virtual/net/ib0", "net");
            sender().send_to(&message, &SocketAddr::new(0, 1), 0).expect("message");
            assert_eq!(monitor.drain().expect("drain"), Drained::default());
            change_lo();
            let events = [event("change", "net", "lo")];
            assert_eq!(monitor.drain().expect("drain"), heard(&events));
        });
    }

    #[test]
    fn odd_names_are_passed_on_or_left_out() {
        in_own_network(|| {
            let monitor = UdevMonitor::open_unprocessed().expect("monitor");
            send("add", b"/devices/virtual/net/ib\xff0", "net");
            send("add", b"/devices/..", "net");
            send("add", b"/devices/virtual/net/ib\x1b[2J=0", "net");
            send("add", "/devices/virtual/net/ib\u{e9}".as_bytes(), "net");
            let events = ["ib\x1b[2J=0", "ib\u{e9}"].map(|sysname| event("add", "net", sysname));
            assert_eq!(monitor.drain().expect("drain"), heard(&events));
        });
    }

    #[test]
    fn no_message_is_a_failure() {
        in_own_network(|| {
            let monitor = UdevMonitor::open_unprocessed().expect("monitor");
            let bytes = || prop::collection::vec(any::<u8>(), 0..100);
            proptest!(|(whole in bytes(), path in bytes())| {
                send_as_kernel(&whole);
                send("add", &[b"/devices/", &path[..]].concat(), "pci");
                // Each drain takes one at the least.
                for _ in 0..2 {
                    monitor.drain().expect("drain");
                }
                prop_assert_eq!(monitor.drain().expect("drain"), Drained::default());
            });
        });
    }
}
