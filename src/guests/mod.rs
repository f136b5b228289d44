//! `ibprov guests`: what needs VFs starts when they are right, and only then.
//!
//! [`order`], [`vf`], [`domain`] and [`deadlock`] are pure: who is next, whether
//! a VF is right, what libvirt said, whether a unit's start can end before ours.
//! [`service`] is the loop; all that may hang (virsh, firmware) is a child.
//! Nothing is ever stopped or restarted.

pub mod deadlock;
pub mod domain;
mod member;
pub mod order;
pub mod service;
mod sight;
mod tasks;
pub mod vf;

pub use member::Member;
pub use tasks::{START_UNIT, serve_start};
