//! udev's processed events, as libudev's monitor delivers them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// What udev has finished with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdevEvent {
    /// `add`, `move`, `bind`, `remove` ...
    pub action: String,
    /// `pci`, `net`, `infiniband` or `auxiliary`.
    pub subsystem: String,
    /// The device's name: `0000:4b:00.0`, `ib0`.
    pub sysname: String,
}

/// The stream of events that udevd has processed. The kernel's own events
/// come up to half a second earlier, with names that do not last.
pub struct UdevMonitor {
    socket: udev::MonitorSocket,
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
        Self::listen(udev::MonitorBuilder::new()?)
    }

    /// Listen to the kernel itself: earlier, without udevd too, and with names
    /// that may not last.
    ///
    /// # Errors
    /// As [`UdevMonitor::open`].
    pub fn open_unprocessed() -> io::Result<Self> {
        Self::listen(udev::MonitorBuilder::new_kernel()?)
    }

    fn listen(mut builder: udev::MonitorBuilder) -> io::Result<Self> {
        for subsystem in ["pci", "net", "infiniband", "auxiliary"] {
            builder = builder.match_subsystem(subsystem)?;
        }
        Ok(Self { socket: builder.listen()? })
    }

    /// The events that have come since the last call.
    #[must_use]
    pub fn drain(&self) -> Vec<UdevEvent> {
        let text = |s: Option<&std::ffi::OsStr>| {
            s.map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let events = self.socket.iter().map(|event| UdevEvent {
            action: text(event.action()),
            subsystem: text(event.subsystem()),
            sysname: event.sysname().to_string_lossy().into_owned(),
        });
        events.collect()
    }
}

impl AsFd for UdevMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
