//! ibprov brings an InfiniBand node up in the right order at boot.
//!
//! The way of the data: files and the host are read into plain values
//! ([`config`], [`observe`]), pure functions judge them ([`ladder`], [`plan`]),
//! [`apply`] acts through [`host`], a report of [`model`] says what happened, and [`show`] prints it.
//! Only [`host`] touches the machine. ARCHITECTURE.md is the map.

// Tests lay out trees of their own.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod apply;
pub mod check;
pub mod cli;
pub mod commands;
pub mod config;
pub mod firmware;
pub mod graph;
pub mod guests;
pub mod host;
pub mod inventory;
pub mod ladder;
pub mod migrate;
pub mod model;
pub mod names;
pub mod node;
pub mod observe;
pub mod online;
pub mod opensm;
pub mod plan;
pub mod show;
pub mod stacks;
pub mod timeline;
pub mod workers;
