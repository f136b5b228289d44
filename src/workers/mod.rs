//! Child processes that do what may hang: what asks firmware or takes a lock that
//! a sick driver holds.

pub mod hand;
pub mod port_reader;
pub mod port_states;
pub mod socket;
