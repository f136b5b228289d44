//! Carries plans out through [`crate::host`], watches what comes of them and
//! fills the report. No step is believed: what it was for is read back.

pub mod boot;
mod boot_vfs;
pub mod bring_up;
pub mod hand;
pub mod iface;
pub mod pf;
pub mod pfs;
pub mod preview;
mod steps;
mod warnings;

/// A duration in microseconds.
fn usec(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 4)
}
