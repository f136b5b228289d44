//! `ibprov migrate`: what brings InfiniBand up today hands over to ibprov at the next boot,
//! and back.
//!
//! [`find`] looks at the host and plans; [`proof`] judges the next boot by the unit graph
//! before anything is changed; [`record`] keeps what was there; [`carry_out`] changes one
//! path after the other. Enabling and disabling a unit is nothing but links
//! (systemctl(1), "enable"), so that a live system and a copied tree are changed in the same
//! way, and each path can be put back as it was. No unit is started, restarted or stopped.

pub mod carry_out;
pub mod find;
pub mod proof;
pub mod record;

pub use carry_out::{Step, back_steps, carry_out};
pub use find::{Found, find, fit};
pub use record::Record;
