//! Carries plans out through [`crate::host`], watches what comes of them and
//! fills the report. No step is believed: what it was for is read back.

pub mod boot;
mod boot_vfs;
pub mod hand;
pub mod pf;
pub mod pfs;
pub mod preview;
mod steps;
mod warnings;
