//! A child process that does what may hang: what asks firmware, or takes a lock
//! that a sick driver holds.
//!
//! Whoever sleeps there sleeps uninterruptibly, as long as the kernel likes; a
//! child that does delays nobody. [`request`] is what can be asked and answered,
//! [`client`] the parent's side, [`child`] the child's, `perform` the doing.

pub mod child;
pub mod client;
mod perform;
pub mod products;
pub mod request;
pub mod survey;
pub mod undo;

pub use client::{Client, Failure, Reply, SILENCE};
pub use request::{Answer, Request};
