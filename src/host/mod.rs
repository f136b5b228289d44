//! The only room that touches the machine.
//!
//! Everything here is an end of the data's way: reading a file under a root,
//! running modprobe, listening to udev, telling systemd and the journal.
//! No judgement is made here: what a reading means is decided in the pure
//! rooms. Whatever can sleep uninterruptibly is run in a child process.

mod root;

pub use root::{ReadError, Root};
