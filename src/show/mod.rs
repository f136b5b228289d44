//! Reports as text for people, and as metrics. Pure: values in, text out.

pub mod advice;
pub mod boot;
pub mod check;
pub mod check_fleet;
pub mod firmware;
pub mod guests;
pub mod holders;
pub mod metrics;
pub mod migrate;
pub mod online;
pub mod pf;
pub mod plan;
pub mod preview;
pub mod screen;
pub mod status;
