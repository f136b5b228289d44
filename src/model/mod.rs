//! What users read: text for people, versioned JSON for programs, journal
//! events with stable MESSAGE_IDs. Pure: values in, text out.

pub mod advice;
pub mod boot;
mod boot_step;
pub mod check_fleet;
pub mod collect;
pub mod common;
pub mod config;
pub mod consumers;
pub mod data;
pub mod degraded;
pub mod duration;
pub mod events;
pub mod finding;
pub mod firmware;
pub mod guests;
pub mod hardware;
pub mod holders;
pub mod iface;
mod iface_step;
pub mod initrd;
pub mod migrate;
mod module_trouble;
pub mod netns;
pub mod node;
pub mod online;
pub mod pf;
pub mod plan;
pub mod plan_fleet;
mod planned_vf;
pub mod port;
pub mod preview;
mod read;
pub mod refusal;
#[cfg(test)]
mod round_trip;
pub mod rxe;
mod silence;
pub mod stack;
pub mod status;
pub mod subnet_manager;
mod uses;
mod vf_cause;
mod vf_lack;
pub mod vf_step;

pub use boot::BootReport;
pub use common::{Exit, SCHEMA, Verdict};
pub use module_trouble::{ModuleTrouble, Said};
pub use pf::PfReport;
pub use port::{Cause, NotExpected, PortProgress};
pub use read::{ReadError, check_schema, read, unpacked};
pub use silence::Silence;
pub use uses::{Away, Use, used_by};
pub use vf_lack::VfLack;
