//! The nspawn lane: systemd's own decisions about our units, in a container.
//! `cargo test --test boot -- --test-threads=1`, as root.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops at the first thing that is not as it should be, and runs other programs"
)]
#![allow(dead_code, reason = "the bed is shared by two lanes, neither of which needs all of it")]

#[path = "../bed/mod.rs"]
mod bed;
mod check;
mod graph;
mod guests;
mod iface;
mod nspawn;
mod openibd;
mod order;
mod reload;
mod scale;
mod surroundings;
