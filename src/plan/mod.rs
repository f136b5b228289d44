//! From what is wanted and what is there to the steps that are missing.
//!
//! Pure: planning twice over the same host gives the same steps, and over a
//! host where they succeeded none.

mod boot;
pub mod diff;
pub mod fleet;
pub mod guid;
mod iface;
pub mod partitions;
pub mod rxe;
pub mod settings;
pub mod subnet_manager;
pub mod vf;

pub use boot::{
    Done, boot_steps, denied_modules, free_names_first, hold_misnamed, misnamed, needed_modules,
    port_types, waits_for_udev,
};
pub use iface::{IfacePlan, concerns_others, has_child, iface_plan, is_withheld, rename, wanted};
pub use vf::VfPlan;
