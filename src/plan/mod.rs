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
mod pf_problem;
pub mod vf;

pub use boot::{Done, Step, boot_steps, waits_for_udev};
pub use iface::{IfacePlan, IfaceStep, WantedInterface, iface_plan, wanted};
pub use pf_problem::PfProblem;
pub use vf::{Deferred, Stage, VfPlan, VfStep};
