//! What users read: text for people, versioned JSON for programs, journal
//! events with stable MESSAGE_IDs. Pure: values in, text out.

pub mod boot;
pub mod check;
pub mod duration;
pub mod events;
pub mod guests;
pub mod iface;
pub mod online;
pub mod pf;
pub mod plan;
pub mod status;

pub use boot::{BootReport, Verdict};
pub use pf::{PfReport, PfVerdict};

/// Version of all JSON output. Fields are added, never changed.
pub const SCHEMA: u32 = 1;
