//! From what is wanted and what is there to the steps that are missing.
//!
//! Pure: planning twice over the same host gives the same steps, and over a
//! host where they succeeded none.

mod boot;
pub mod diff;
pub mod fleet;
pub mod guid;
pub mod host_number;
pub mod partitions;
mod pf_problem;
pub mod pins;
pub mod template;
pub mod vf;
mod wanted;

pub use boot::{Done, Step, boot_steps, waits_for_udev};
pub use host_number::{HostNumber, NameRule};
pub use pf_problem::PfProblem;
pub use template::{GuidKind, Template};
pub use vf::{Deferred, Stage, VfPlan, VfStep};
pub use wanted::{Policy, VfDriver, WantedPf, WantedVf};
