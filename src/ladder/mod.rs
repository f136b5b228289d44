//! The readiness ladder: how far a port has climbed, and which ports have to.
//!
//! Pure: values from [`crate::observe`] and [`crate::config`] in, judgements
//! out. [`expect`] says who has to climb, [`progress`] how far each is,
//! [`cause`] why one is stuck, [`active`] whether the fabric uses it, [`minimum`] what its link
//! has to be. Nothing here waits or reads the host.

pub mod active;
pub mod cause;
pub mod expect;
#[cfg(test)]
pub(crate) mod fixtures;
mod heard;
pub mod minimum;
pub mod module_trouble;
pub mod next_boot;
pub mod progress;
pub mod roce;
pub mod vf;

pub use cause::KernelLogFacts;
pub use expect::{Expectation, Expected};
pub use heard::UdevHistory;
