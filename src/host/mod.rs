//! The only room that touches the machine.
//!
//! Everything here is an end of the data's way: reading a file under a root,
//! running modprobe, listening to udev, telling systemd and the journal.
//! No judgement is made here: what a reading means is decided in the pure
//! rooms. Whatever can sleep uninterruptibly is run in a child process.

pub mod alarm;
pub mod archive;
pub mod attribute;
pub mod bus;
pub mod clock;
pub mod config_files;
pub mod events;
pub mod firmware_tool;
#[doc(hidden)]
pub mod fuzz;
pub mod initrd;
pub mod journal;
mod kernel_log;
pub mod link_events;
pub mod links;
pub mod live_line;
pub mod lock;
pub mod logs;
pub mod manager;
pub mod netlink;
mod netlink_wire;
pub mod persistent_names;
pub mod pins_file;
pub mod process;
pub mod rdma_netlink;
pub mod recovery;
mod root;
pub mod rxe_rules;
pub mod site_files;
pub mod start_up;
pub mod state;
pub mod systemctl;
pub mod systemd;
pub mod terminal;
#[cfg(test)]
pub(crate) mod testing;
mod udev;
pub mod udev_record;
mod udev_rules;
pub mod unit;
pub mod unit_links;
pub mod virsh;

pub use self::udev::UdevEvent;
pub use kernel_log::KernelLine;
pub use root::{RC_LOCAL_GENERATOR, ReadError, Root, SYSV_GENERATOR, answer, errno_name};

/// The kernel log so far.
///
/// # Errors
/// As [`kernel_log::KernelLog::open`].
pub fn kernel_log() -> std::io::Result<Vec<KernelLine>> {
    kernel_log::KernelLog::open()?.drain()
}
